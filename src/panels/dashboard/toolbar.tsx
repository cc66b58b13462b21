/**
 * The bar over a dashboard: the run, its step cursor, and what to add.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, addIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import { CommandIDs } from '../../commands';
import { formatRate } from '../../model/format';
import type { RunModel } from '../../model/run';
import type { IPanelState, ITdbgService } from '../../tokens';
import { ShortCost } from '../cost';
import { missingRun, runName } from '../name';
import { Popover } from '../popover';
import { StepButtons, StepSlider } from '../scrubber';
import { useSignals } from '../signals';
import {
  FindingBadges,
  RunStatusIcon,
  runStatusWord,
  stepWords
} from '../words';
import { RULES_TILE } from './layout';

/** What the bar needs. */
export interface IDashboardToolbarProps {
  readonly run: RunModel;
  readonly service: ITdbgService;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  readonly onAdd: (tile: IPanelState) => void;
}

/** The widget that holds the bar. */
export class DashboardToolbar extends ReactWidget {
  constructor(props: IDashboardToolbarProps) {
    super();
    this.addClass('jp-TdbgDashboard-bar');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Bar {...this._props} />;
  }

  private _props: IDashboardToolbarProps;
}

function Bar(props: IDashboardToolbarProps): JSX.Element {
  const { run, service, commands, trans } = props;
  const { cursor } = run;
  useSignals(run.changed, cursor.changed, service.views.changed);
  const { summary } = run;
  const isGone = run.state === 'missing';
  const live = summary?.status === 'running' && !isGone;
  const rate = live ? formatRate(summary.steps_per_second) : '';
  return (
    <>
      <span className="jp-TdbgDashboard-run" title={summary?.path}>
        {summary && !isGone && <RunStatusIcon status={summary.status} />}
        <bdi className="jp-TdbgDashboard-name">{runName(run, trans)}</bdi>
        <span className="jp-TdbgRun-state">
          {summary &&
            (isGone
              ? missingRun(run, trans)
              : runStatusWord(summary.status, trans))}
          {rate && ` · ${rate}`}
        </span>
        {summary && <FindingBadges counts={summary.findings} trans={trans} />}
      </span>
      <StepSlider cursor={cursor} trans={trans} />
      <span className="jp-TdbgDashboard-step">
        {stepWords(cursor.step, live, trans)}
      </span>
      <StepButtons cursor={cursor} trans={trans} live={live} />
      <ShortCost cost={run.detail?.cost ?? null} trans={trans} />
      <Popover
        label={trans.__('Add a view')}
        popup="dialog"
        align="end"
        className="jp-TdbgAdd"
        buttonClass="jp-TdbgIconButton"
        button={<addIcon.react tag="span" />}
        render={close => <AddList {...props} close={close} />}
      />
      {live && (
        <button
          className="jp-TdbgButton jp-mod-warn"
          onClick={() => {
            void commands.execute(CommandIDs.stopRun, { run: run.id });
          }}
        >
          {trans.__('Stop…')}
        </button>
      )}
    </>
  );
}

/** The views that can be added. */
function AddList(
  props: IDashboardToolbarProps & { readonly close: () => void }
): JSX.Element {
  const { service, trans, onAdd, close } = props;
  const add = (view: string) => (): void => {
    close();
    onAdd({ view, params: {} });
  };
  return (
    <ul className="jp-TdbgAdd-list" role="menu">
      {service.views.all.map(view => (
        <li key={view.name} role="none">
          <button role="menuitem" onClick={add(view.name)}>
            <span>{view.title}</span>
            <span className="jp-TdbgAdd-help">{view.description}</span>
          </button>
        </li>
      ))}
      <li role="none">
        <button role="menuitem" onClick={add(RULES_TILE)}>
          <span>{trans.__('Rules and findings')}</span>
          <span className="jp-TdbgAdd-help">
            {trans.__('What the rules saw, with advice.')}
          </span>
        </button>
      </li>
    </ul>
  );
}
