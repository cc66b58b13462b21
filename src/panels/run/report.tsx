/**
 * The report on a run: the button that asks for it, how far it is, and the page.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import { CommandIDs } from '../../commands';
import { formatBytes } from '../../model/format';
import type { RunModel } from '../../model/run';
import { JobLine } from '../job';
import { useSignals } from '../signals';

/** What both parts need. */
export interface IReportProps {
  readonly run: RunModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The button. It keeps the focus while the report is written. */
export function ReportButton(props: IReportProps): JSX.Element {
  const { run, commands, trans } = props;
  useSignals(run.report.changed);
  return (
    <button
      className="jp-TdbgButton"
      aria-disabled={run.report.isBusy}
      title={trans.__(
        'Write all about this run into one page that needs no network'
      )}
      onClick={() => {
        void commands.execute(CommandIDs.writeReport, { run: run.id });
      }}
    >
      {trans.__('Report')}
    </button>
  );
}

/** How far it is; the page, once it is there. */
export function ReportState(props: IReportProps): JSX.Element | null {
  const { run, trans } = props;
  const { report } = run;
  useSignals(report.changed);
  switch (report.state) {
    case 'idle':
      return null;
    case 'queued':
    case 'running':
      return (
        <JobLine
          progress={report.progress}
          label={trans.__('Progress of the report')}
          message={report.message || trans.__('Writing the report')}
          role="status"
          cancel={trans.__('Cancel')}
          cancelLabel={trans.__('Cancel the report')}
          onCancel={() => void report.cancel()}
        />
      );
    case 'failed':
      return (
        <p className="jp-TdbgRun-error" role="alert">
          {trans.__('Report: %1', report.message)}
        </p>
      );
    case 'cancelled':
      return (
        <p className="jp-TdbgRun-note" role="status">
          {report.message || trans.__('The report was cancelled.')}
        </p>
      );
    case 'done':
      return (
        <div className="jp-TdbgRun-actions" role="status">
          <span title={report.result?.file}>{trans.__('Report written:')}</span>
          <CommandButton
            {...props}
            command={CommandIDs.openReport}
            label={trans.__('Open')}
            title={trans.__('Open the report')}
          />
          <CommandButton
            {...props}
            command={CommandIDs.saveReport}
            label={trans.__('Download')}
            title={trans.__('Download the report')}
            caption={formatBytes(report.result?.bytes ?? 0)}
          />
          <CommandButton
            {...props}
            command={CommandIDs.saveReportNotebook}
            label={trans.__('Notebook')}
            title={trans.__('Download the report as a notebook')}
          />
        </div>
      );
  }
}

/** A button that executes a command on the run. */
function CommandButton(
  props: IReportProps & {
    readonly command: string;
    readonly label: string;
    /** What it does, for those who only hear it. */
    readonly title: string;
    readonly caption?: string;
  }
): JSX.Element {
  const { run, commands, command } = props;
  if (!commands.isVisible(command)) {
    return <></>;
  }
  return (
    <button
      className="jp-TdbgButton"
      aria-label={props.title}
      title={props.caption}
      onClick={() => {
        void commands.execute(command, { run: run.id });
      }}
    >
      {props.label}
    </button>
  );
}
