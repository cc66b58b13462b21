/**
 * The list of runs with its filter.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, searchIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import type { IRunSummary } from '../../api/wire';
import { CommandIDs } from '../../commands';
import { dashboardIcon } from '../../icons';
import { formatNumber, formatRate } from '../../model/format';
import type { RunOrder } from '../../model/runs';
import { lastLoss } from '../../model/runs';
import type { ITdbgService } from '../../tokens';
import { EmptyState } from '../empty';
import { isolated, nameAt } from '../name';
import { useSignals } from '../signals';
import { Sparkline } from '../sparkline';
import { WindowedRows } from '../window/rows';
import {
  FindingBadges,
  RunStatusIcon,
  lastStepWords,
  runStatusWord
} from '../words';
import { ChosenBar } from './chosen';

/** Height of a row, px. */
const ROW_HEIGHT = 44;

/** More tags than this have no room in a row. */
const MOST_TAGS = 8;

/** What the list needs. */
export interface IRunsProps {
  readonly service: ITdbgService;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The widget that holds the list. */
export class RunsBody extends ReactWidget {
  constructor(props: IRunsProps) {
    super();
    this.addClass('jp-TdbgRuns');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Runs {...this._props} />;
  }

  private _props: IRunsProps;
}

/** Filter and list. */
function Runs(props: IRunsProps): JSX.Element {
  const { service, commands, trans } = props;
  const { runs, connection, chosen } = service;
  useSignals(
    runs.changed,
    chosen.changed,
    connection.changed,
    service.currentChanged
  );
  const current = service.current?.id ?? null;
  const several = chosen.all;

  const onActivate = (run: IRunSummary, event: React.UIEvent): void => {
    const { ctrlKey, metaKey, shiftKey } = event as React.MouseEvent;
    if (ctrlKey || metaKey) {
      chosen.toggle(run.id, current);
    } else if (shiftKey) {
      chosen.extend(run.id, current);
    } else {
      chosen.clear();
      void commands.execute(CommandIDs.openRun, { run: run.id });
    }
  };
  const onKey = (
    run: IRunSummary,
    event: React.KeyboardEvent
  ): boolean | IRunSummary => {
    const { key, shiftKey } = event;
    const isAccel = event.ctrlKey || event.metaKey;
    if (shiftKey && (key === 'ArrowDown' || key === 'ArrowUp')) {
      const next =
        runs.visible[
          runs.visible.indexOf(run) + (key === 'ArrowDown' ? 1 : -1)
        ];
      chosen.extend((next ?? run).id, run.id);
      return next ?? true;
    }
    if (isAccel && key.toLowerCase() === 'a') {
      chosen.addAll();
      return true;
    }
    switch (key) {
      case 'Escape':
        chosen.clear();
        return several.length > 0;
      case 'F2':
        void commands.execute(CommandIDs.renameRun, { run: run.id });
        return true;
      case 'Delete':
        void commands.execute(
          CommandIDs.deleteRun,
          several.length > 1 && several.includes(run)
            ? { runs: several.map(({ id }) => id) }
            : { run: run.id }
        );
        return true;
      default:
        return false;
    }
  };

  return (
    <>
      <div className="jp-TdbgFilter">
        <searchIcon.react tag="span" className="jp-TdbgFilter-icon" />
        <input
          type="search"
          className="jp-TdbgFilter-input"
          placeholder={trans.__('Filter runs')}
          aria-label={trans.__('Filter runs')}
          title={trans.__('Filter runs by name, tag, note or state')}
          value={runs.filter}
          onChange={event => {
            runs.filter = event.target.value;
          }}
        />
        <OrderChoice {...props} />
      </div>
      <ChosenBar {...props} />
      {runs.visible.length === 0 ? (
        <NoRuns {...props} />
      ) : (
        <WindowedRows
          className={connection.isStale ? 'jp-mod-stale' : ''}
          items={runs.visible}
          rowHeight={ROW_HEIGHT}
          keyOf={run => run.id}
          role="listbox"
          label={trans.__('Runs')}
          reveal={current}
          edited={runs.renaming}
          several={true}
          onActivate={onActivate}
          onDoubleClick={run => {
            void commands.execute(CommandIDs.openDashboard, { run: run.id });
          }}
          onKey={onKey}
          textOf={run => run.name}
          rowProps={run =>
            ({
              className: `jp-TdbgRuns-item${
                run.id === current ? ' jp-mod-current' : ''
              }${chosen.has(run.id) ? ' jp-mod-chosen' : ''}`,
              'aria-current': run.id === current,
              'aria-selected':
                several.length > 0 ? chosen.has(run.id) : run.id === current,
              title: describe(run, trans),
              'data-tdbg-run': run.id
            }) as React.HTMLAttributes<HTMLDivElement>
          }
          render={run => <RunRow {...props} run={run} />}
        />
      )}
      {runs.unread.length > 0 && (
        <p className="jp-TdbgRuns-note">
          {trans._n(
            "A folder of the server's setting TdbgApp.run_roots cannot be read now: %2. It is not there yet, or not mounted.",
            "%1 folders of the server's setting TdbgApp.run_roots cannot be read now: %2. They are not there yet, or not mounted.",
            runs.unread.length,
            runs.unread.join(', ')
          )}
        </p>
      )}
      {runs.isTruncated && (
        <p className="jp-TdbgRuns-note">
          {trans.__(
            'Some runs may be missing: there are more folders than the server looks at. Name those of your runs in its setting TdbgApp.run_roots.'
          )}
        </p>
      )}
    </>
  );
}

/** How the list is sorted. */
function OrderChoice(props: IRunsProps): JSX.Element {
  const { trans } = props;
  const { runs } = props.service;
  return (
    <select
      className="jp-TdbgFilter-order"
      aria-label={trans.__('Order of the runs')}
      title={trans.__('Order of the runs')}
      value={runs.order}
      onChange={event => {
        runs.order = event.target.value as RunOrder;
        event.target
          .closest('.jp-TdbgRuns')
          ?.querySelector('.jp-TdbgRows')
          ?.scrollTo?.({ top: 0 });
      }}
    >
      <option value="newest">{trans.__('Newest')}</option>
      <option value="name">{trans.__('Name')}</option>
      <option value="loss">{trans.__('Loss')}</option>
    </select>
  );
}

/** One run: name and findings above, state, step and loss below. */
function RunRow(
  props: IRunsProps & { readonly run: IRunSummary }
): JSX.Element {
  const { run, service, commands, trans } = props;
  const rate = run.status === 'running' ? formatRate(run.steps_per_second) : '';
  return (
    <>
      <div className="jp-TdbgRuns-line">
        <RunStatusIcon status={run.status} />
        {service.runs.renaming === run.id ? (
          <NameInput {...props} />
        ) : (
          <bdi className="jp-TdbgRuns-name">
            {nameAt(run.name, service.runs.where(run.id), trans)}
          </bdi>
        )}
        <FindingBadges counts={run.findings} trans={trans} />
        <span
          className="jp-TdbgRuns-open jp-Button jp-mod-minimal"
          title={trans.__('Open dashboard')}
          aria-hidden="true"
          onClick={event => {
            event.stopPropagation();
            void commands.execute(CommandIDs.openDashboard, { run: run.id });
          }}
        >
          <dashboardIcon.react tag="span" width="14px" height="14px" />
        </span>
      </div>
      <div className="jp-TdbgRuns-line jp-mod-secondary">
        <span className={`jp-TdbgRuns-state jp-mod-${run.status}`}>
          {runStatusWord(run.status, trans)}
        </span>
        <span>
          {service.runs.order === 'loss' && run.loss
            ? trans.__('loss %1', formatNumber(lastLoss(run)))
            : lastStepWords(run, trans)}
        </span>
        {rate && <span>{rate}</span>}
        <span className="jp-TdbgRuns-tags">
          {run.tags.slice(0, MOST_TAGS).map(tag => (
            <bdi key={tag} className="jp-TdbgTag">
              {tag}
            </bdi>
          ))}
        </span>
        <Sparkline points={run.loss} label={trans.__('Loss over steps')} />
      </div>
    </>
  );
}

/** The name being edited in place. */
function NameInput(
  props: IRunsProps & { readonly run: IRunSummary }
): JSX.Element {
  const { run, service, trans } = props;
  const [name, setName] = React.useState(run.name);
  const done = React.useRef(false);
  const finish = (save: boolean, target: HTMLElement): void => {
    if (done.current) {
      return;
    }
    done.current = true;
    const list = target.closest<HTMLElement>('.jp-TdbgRows');
    service.runs.renaming = null;
    list?.focus();
    const trimmed = name.trim();
    if (save && trimmed && trimmed !== run.name) {
      void props.commands.execute(CommandIDs.renameRun, {
        run: run.id,
        name: trimmed
      });
    }
  };
  return (
    <input
      className="jp-TdbgRuns-rename"
      dir="auto"
      aria-label={trans.__('New name of the run')}
      value={name}
      autoFocus
      onFocus={event => event.currentTarget.select()}
      onClick={event => event.stopPropagation()}
      onDoubleClick={event => event.stopPropagation()}
      onChange={event => setName(event.target.value)}
      onBlur={event => finish(true, event.currentTarget)}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Enter' || event.key === 'Escape') {
          finish(event.key === 'Enter', event.currentTarget);
        }
      }}
    />
  );
}

/** What to do when there is nothing to list. */
function NoRuns(props: IRunsProps): JSX.Element {
  const { service, trans } = props;
  const { runs, connection } = service;
  if (runs.all.length > 0) {
    return (
      <EmptyState title={trans.__('No run matches the filter')}>
        <button
          className="jp-TdbgLink"
          onClick={() => {
            runs.filter = '';
          }}
        >
          {trans.__('Show all runs')}
        </button>
      </EmptyState>
    );
  }
  switch (connection.state) {
    case 'missing':
      return (
        <EmptyState
          title={trans.__('The server extension is not enabled')}
          code="jupyter server extension enable tdbg_lab"
        >
          {trans.__('Run this command in a terminal, then restart the server:')}
        </EmptyState>
      );
    case 'offline':
      return (
        <EmptyState title={trans.__('The server does not answer')}>
          {trans.__('The list returns as soon as it does.')}
        </EmptyState>
      );
    case 'denied':
      return (
        <EmptyState title={trans.__('The server asks for a login')}>
          {trans.__('Reload the page to log in.')}
        </EmptyState>
      );
    case 'connecting':
    case 'live':
    case 'stale':
      return runs.isLoaded ? (
        <EmptyState
          title={trans.__('No runs yet')}
          code={'import tdbg_lab as tdbg\ntdbg.attach(model, optimizer=opt)'}
        >
          {trans.__('Put these lines before your training loop and run it:')}
        </EmptyState>
      ) : (
        <EmptyState title={trans.__('Looking for runs…')} />
      );
  }
}

/** What a row says when the mouse rests on it. */
function describe(run: IRunSummary, trans: TranslationBundle): string {
  return [
    run.name,
    trans.__('Path: %1', isolated(run.path)),
    run.framework && trans.__('Framework: %1', run.framework),
    run.loss && trans.__('Last loss: %1', formatNumber(lastLoss(run))),
    run.tags.length > 0 && trans.__('Tags: %1', run.tags.join(', ')),
    run.notes
  ]
    .filter(Boolean)
    .join('\n');
}
