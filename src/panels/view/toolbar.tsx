/**
 * The toolbar of a view: the parameters that matter most, the others behind a button, the step.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';

import type { IRunSummary, IViewParam } from '../../api/wire';
import { optionsIcon, tableIcon } from '../../icons';
import type { FigureModel } from '../../model/figure';
import { takesRuns, visibleParams } from '../../model/params';
import type { RunsModel } from '../../model/runs';
import { Popover } from '../popover';
import { StepButtons } from '../scrubber';
import { useSignals } from '../signals';
import { ParamControl } from './param';

/** Room that a parameter takes in the bar, and that of all buttons together, px. */
const [PARAM_WIDTH, BUTTONS_WIDTH] = [90, 110];

/** What the toolbar needs. */
export interface IViewToolbarProps {
  readonly model: FigureModel;
  /** What can be chosen as another run. */
  readonly runs: RunsModel;
  readonly trans: TranslationBundle;
  /** Whether the numbers are shown, and what changes that. */
  readonly isTable: () => boolean;
  readonly onTable: () => void;
  /** Emits after that changed. */
  readonly tableChanged: ISignal<unknown, void>;
}

/** The widget that holds the toolbar. */
export class ViewToolbar extends ReactWidget {
  constructor(props: IViewToolbarProps) {
    super();
    this.addClass('jp-TdbgViewToolbar');
    this._props = props;
  }

  protected override onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    const room = Math.floor((msg.width - BUTTONS_WIDTH) / PARAM_WIDTH);
    if (msg.width >= 0 && room !== this._room) {
      this._room = room;
      this.update();
    }
  }

  protected override render(): JSX.Element {
    return <ToolbarContent {...this._props} room={this._room} />;
  }

  private _props: IViewToolbarProps;
  private _room = Infinity;
}

function ToolbarContent(
  props: IViewToolbarProps & {
    /** Number of parameters that there is room for. */
    readonly room: number;
  }
): JSX.Element {
  const { model, trans } = props;
  const { run } = model;
  useSignals(
    model.changed,
    run.tensorsChanged,
    run.changed,
    props.runs.changed,
    props.tableChanged
  );
  const { shown, hidden } = split(visibleParams(model.view), props.room);
  const { params } = model;
  const control = (param: IViewParam): JSX.Element => (
    <ParamControl
      param={param}
      value={
        params[param.name] ??
        (param.kind === 'tensor' ? model.meta.tensor : undefined)
      }
      tensors={run.tensors}
      runs={
        takesRuns(param)
          ? props.runs.all.filter(({ id }) => id !== run.id)
          : NO_RUNS
      }
      trans={trans}
      onChange={value => model.choose({ [param.name]: value })}
    />
  );
  return (
    <>
      {shown.map(param => (
        <React.Fragment key={param.name}>{control(param)}</React.Fragment>
      ))}
      {hidden.length > 0 && (
        <Popover
          label={trans.__('Options of this view')}
          popup="dialog"
          align="start"
          className="jp-TdbgOptions"
          buttonClass="jp-TdbgIconButton"
          button={<optionsIcon.react tag="span" />}
          render={() => (
            <div className="jp-TdbgOptions-form">
              {hidden.map(param => (
                <label key={param.name} className="jp-TdbgOptions-row">
                  <span className="jp-TdbgOptions-label">{param.label}</span>
                  {control(param)}
                  {param.help && (
                    <span className="jp-TdbgOptions-help">{param.help}</span>
                  )}
                </label>
              ))}
            </div>
          )}
        />
      )}
      <span className="jp-TdbgViewToolbar-spacer" />
      <button
        className={`jp-TdbgIconButton${props.isTable() ? ' jp-mod-on' : ''}`}
        aria-pressed={props.isTable()}
        aria-label={trans.__('Show as table')}
        title={trans.__('Show as table')}
        onClick={props.onTable}
      >
        <tableIcon.react tag="span" />
      </button>
      <StepButtons
        cursor={run.cursor}
        trans={trans}
        live={run.summary?.status === 'running'}
      />
    </>
  );
}

const NO_RUNS: ReadonlyArray<IRunSummary> = [];

/** The other run, the tensor and the first choice are shown where there is room, all else is an option. */
function split(
  params: ReadonlyArray<IViewParam>,
  room: number
): {
  readonly shown: ReadonlyArray<IViewParam>;
  readonly hidden: ReadonlyArray<IViewParam>;
} {
  const tensor = params.find(
    ({ kind }) => kind === 'tensor' || kind === 'tensors'
  );
  const choice = params.find(
    ({ kind, name }) => kind === 'choice' && name !== 'mode'
  );
  const other = params.find(takesRuns);
  const shown = [other, tensor, choice]
    .filter((param): param is IViewParam => param !== undefined)
    .slice(0, Math.max(room, 0));
  return { shown, hidden: params.filter(param => !shown.includes(param)) };
}
