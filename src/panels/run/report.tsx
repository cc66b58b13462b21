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
  const { run, commands, trans } = props;
  const { report } = run;
  useSignals(report.changed);
  const execute = (id: string) => (): void => {
    void commands.execute(id, { run: run.id });
  };
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
          {report.message}
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
          <button
            className="jp-TdbgButton"
            aria-label={trans.__('Open the report')}
            onClick={execute(CommandIDs.openReport)}
          >
            {trans.__('Open')}
          </button>
          <button
            className="jp-TdbgButton"
            aria-label={trans.__('Download the report')}
            title={formatBytes(report.result?.bytes ?? 0)}
            onClick={execute(CommandIDs.saveReport)}
          >
            {trans.__('Download')}
          </button>
          <button
            className="jp-TdbgButton"
            aria-label={trans.__('Download the report as a notebook')}
            onClick={execute(CommandIDs.saveReportNotebook)}
          >
            {trans.__('Notebook')}
          </button>
        </div>
      );
  }
}
