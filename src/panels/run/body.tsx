/**
 * The current run: its state, its step cursor, what may be done with it, and what is known of it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { JSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IRunDetail } from '../../api/wire';
import { CommandIDs } from '../../commands';
import {
  formatDate,
  formatNumber,
  formatRate,
  formatStep
} from '../../model/format';
import type { RunModel } from '../../model/run';
import type { ITdbgService } from '../../tokens';
import { LongCost } from '../cost';
import { EmptyState } from '../empty';
import { missingRun, runName } from '../name';
import { showOpened } from '../opened';
import { StepButtons, StepSlider } from '../scrubber';
import { useSignals } from '../signals';
import {
  FindingBadges,
  RunStatusIcon,
  runStatusWord,
  stepWords
} from '../words';
import { ProfileButton, ProfileState } from './profiling';
import { ReportButton, ReportState } from './report';

/** What the section needs. */
export interface IRunProps {
  readonly service: ITdbgService;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The widget that holds the section. */
export class RunBody extends ReactWidget {
  constructor(props: IRunProps) {
    super();
    this.addClass('jp-TdbgRun');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <CurrentRun {...this._props} />;
  }

  private _props: IRunProps;
}

/** The current run, if there is one. */
function CurrentRun(props: IRunProps): JSX.Element {
  useSignals(props.service.currentChanged);
  const run = props.service.current;
  return run ? (
    <Run key={run.id} run={run} {...props} />
  ) : (
    <EmptyState title={props.trans.__('No run is open')}>
      {props.trans.__('Choose a run above to open it.')}
    </EmptyState>
  );
}

/** Everything about one run. */
function Run(props: IRunProps & { readonly run: RunModel }): JSX.Element {
  const { run, trans } = props;
  useSignals(run.changed);
  if (run.state === 'missing') {
    return (
      <EmptyState title={missingRun(run, trans)}>
        {run.summary
          ? trans.__('Its pictures stay until you close them.')
          : trans.__('Choose a run above to open it.')}
      </EmptyState>
    );
  }
  return (
    <>
      <RunHead {...props} />
      <RunCursor {...props} />
      <RunActions {...props} />
      <ProfileState {...props} />
      <ReportState {...props} />
      {run.detail?.error && (
        <div className="jp-TdbgRun-error" role="alert">
          {run.detail.error}
        </div>
      )}
      <LongCost cost={run.detail?.cost ?? null} trans={trans} />
      {run.detail && <RunFacts {...props} detail={run.detail} />}
    </>
  );
}

/** Name, state and speed. */
function RunHead(props: { readonly run: RunModel } & IRunProps): JSX.Element {
  const { run, trans } = props;
  const { summary } = run;
  const rate =
    summary?.status === 'running' ? formatRate(summary.steps_per_second) : '';
  return (
    <div className="jp-TdbgRun-head">
      {summary && <RunStatusIcon status={summary.status} />}
      <bdi className="jp-TdbgRun-name" title={summary?.path}>
        {runName(run, trans)}
      </bdi>
      <span className="jp-TdbgRun-state">
        {summary && runStatusWord(summary.status, trans)}
        {rate && ` · ${rate}`}
      </span>
      {summary && <FindingBadges counts={summary.findings} trans={trans} />}
    </div>
  );
}

/** The step cursor. */
function RunCursor(props: { readonly run: RunModel } & IRunProps): JSX.Element {
  const { run, trans } = props;
  const { cursor } = run;
  useSignals(cursor.changed);
  return (
    <div
      className="jp-TdbgRun-cursor"
      role="group"
      aria-label={trans.__('Step cursor')}
    >
      <StepSlider cursor={cursor} trans={trans} />
      <div className="jp-TdbgRun-cursorLine">
        <span className="jp-TdbgRun-step">
          {stepWords(cursor.step, run.summary?.status === 'running', trans)}
          {!cursor.following && cursor.last >= 0 && (
            <span className="jp-TdbgRun-of">
              {trans.__('of %1', formatStep(cursor.last))}
            </span>
          )}
        </span>
        <StepButtons
          cursor={cursor}
          trans={trans}
          live={run.summary?.status === 'running'}
        />
      </div>
    </div>
  );
}

/** What may be done. */
function RunActions(
  props: { readonly run: RunModel } & IRunProps
): JSX.Element {
  const { run, commands, trans } = props;
  const execute = (id: string) => (): void => {
    void commands.execute(id, { run: run.id });
  };
  return (
    <div className="jp-TdbgRun-actions">
      <button
        className="jp-TdbgButton jp-mod-primary"
        aria-label={trans.__('Open dashboard')}
        title={trans.__('Open dashboard')}
        onClick={execute(CommandIDs.openDashboard)}
      >
        {trans.__('Dashboard')}
      </button>
      <button className="jp-TdbgButton" onClick={execute(CommandIDs.openRules)}>
        {trans.__('Rules')}
      </button>
      <ReportButton run={run} commands={commands} trans={trans} />
      <ProfileButton run={run} commands={commands} trans={trans} />
      {run.summary?.status === 'running' && (
        <button
          className="jp-TdbgButton jp-mod-warn"
          onClick={execute(CommandIDs.stopRun)}
        >
          {trans.__('Stop…')}
        </button>
      )}
    </div>
  );
}

/** Tags, note, and what the run says of itself. */
function RunFacts(
  props: { readonly run: RunModel; readonly detail: IRunDetail } & IRunProps
): JSX.Element {
  const { run, detail, commands, trans } = props;
  const facts: Array<readonly [string, string]> = [
    [trans.__('Started'), formatDate(detail.created_ns)],
    [trans.__('Path'), detail.path],
    [trans.__('Framework'), detail.framework],
    [trans.__('Host'), detail.host],
    [trans.__('Ranks'), detail.ranks.length > 1 ? detail.ranks.join(', ') : ''],
    [trans.__('Modes'), detail.modes.join(', ')],
    [trans.__('Commit'), String(detail.git?.['commit'] ?? '').slice(0, 10)]
  ];
  return (
    <>
      <div className="jp-TdbgRun-tags">
        {detail.tags.map(tag => (
          <bdi key={tag} className="jp-TdbgTag">
            {tag}
          </bdi>
        ))}
        <button
          className="jp-TdbgLink"
          onClick={() => {
            void commands.execute(CommandIDs.editTags, { run: run.id });
          }}
        >
          {detail.tags.length > 0
            ? trans.__('Edit tags')
            : trans.__('Add tags')}
        </button>
        <button
          className="jp-TdbgLink"
          onClick={() => {
            void commands.execute(CommandIDs.editNote, { run: run.id });
          }}
        >
          {detail.notes ? trans.__('Edit note') : trans.__('Add note')}
        </button>
      </div>
      {detail.notes && (
        <p className="jp-TdbgRun-note" dir="auto">
          {detail.notes}
        </p>
      )}
      <details className="jp-TdbgRun-facts" onToggle={showOpened}>
        <summary>{trans.__('About this run')}</summary>
        <dl>
          {facts
            .filter(([, value]) => value !== '')
            .map(([label, value]) => (
              <Fact key={label} label={label} value={value} />
            ))}
          {Object.entries(detail.hyperparameters).map(([name, value]) => (
            <Fact key={`h/${name}`} label={name} value={plain(value)} />
          ))}
        </dl>
      </details>
    </>
  );
}

/** One fact. */
function Fact(props: {
  readonly label: string;
  readonly value: string;
}): JSX.Element {
  return (
    <>
      <dt title={props.label}>{props.label}</dt>
      <dd title={props.value}>{props.value}</dd>
    </>
  );
}

/** A value of JSON as one line. */
function plain(value: JSONValue | undefined): string {
  if (typeof value === 'number') {
    return formatNumber(value);
  }
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
