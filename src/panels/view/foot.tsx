/**
 * What stands around a picture: why there is none, how old it is, how far a job is, the slider.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { formatTime } from '../../model/format';
import type { FigureModel } from '../../model/figure';
import type { ITdbgService } from '../../tokens';
import { EmptyState } from '../empty';
import { JobLine } from '../job';
import { missingRun } from '../name';
import { StepSlider } from '../scrubber';
import { useSignals } from '../signals';
import { stepWords } from '../words';
import { RangeBar } from './range';

/** What the foot needs. */
export interface IViewFootProps {
  readonly model: FigureModel;
  readonly service: ITdbgService;
  readonly trans: TranslationBundle;
}

/** Below the picture. */
export class ViewFoot extends ReactWidget {
  constructor(props: IViewFootProps) {
    super();
    this.addClass('jp-TdbgViewFoot');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Foot {...this._props} />;
  }

  private _props: IViewFootProps;
}

/** Over the picture, while there is none. */
export class ViewOverlay extends ReactWidget {
  constructor(props: IViewFootProps) {
    super();
    this.addClass('jp-TdbgViewOverlay');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Overlay {...this._props} />;
  }

  private _props: IViewFootProps;
}

function Foot(props: IViewFootProps): JSX.Element {
  const { model, service, trans } = props;
  const { run } = model;
  useSignals(
    model.changed,
    run.changed,
    run.cursor.changed,
    service.connection.changed
  );
  const { caption } = model.meta;
  const isGone = run.state === 'missing';
  const problem = isGone ? missingRun(run, trans) : model.error;
  const failure = model.figure ? problem : '';
  return (
    <>
      {model.pending && <Job {...props} />}
      {model.sharedRange && (
        <RangeBar range={model.sharedRange} time={run.time} trans={trans} />
      )}
      <StepSlider cursor={run.cursor} trans={trans} />
      <div className="jp-TdbgViewFoot-line">
        {(failure || outdated(props)) && (
          <span className="jp-TdbgViewFoot-asOf">
            {trans.__('As of %1', formatTime(model.asOf ?? 0))}
          </span>
        )}
        {failure ? (
          <span
            className="jp-TdbgViewFoot-caption jp-mod-failure"
            title={failure}
            // Of what concerns all pictures, one line tells once.
            role={isGone || service.connection.isStale ? undefined : 'alert'}
          >
            {failure}
          </span>
        ) : (
          <span className="jp-TdbgViewFoot-caption" title={caption}>
            {caption}
          </span>
        )}
        <span className="jp-TdbgViewFoot-step">
          {stepWords(run.cursor.step, run.summary?.status === 'running', trans)}
        </span>
      </div>
    </>
  );
}

/** How far the job that refines the picture is. */
function Job(props: IViewFootProps): JSX.Element | null {
  const { model, trans } = props;
  const { pending } = model;
  if (!pending) {
    return null;
  }
  return (
    <JobLine
      progress={pending.progress}
      label={pending.message || trans.__('Computing')}
      message={pending.message || trans.__('Computing…')}
      cancel={trans.__('Cancel')}
      onCancel={() => void model.cancel()}
    />
  );
}

function Overlay(props: IViewFootProps): JSX.Element | null {
  const { model, service, trans } = props;
  const { run } = model;
  const { unread } = service.runs;
  useSignals(model.changed, run.changed, service.runs.changed);
  if (model.figure) {
    return null;
  }
  if (run.state === 'missing') {
    return (
      <EmptyState title={missingRun(run, trans)}>
        {unread.length > 0 && !run.summary
          ? trans.__(
              'The server cannot read this folder of runs now: %1. If the run is there, its picture comes with the folder.',
              unread.join(', ')
            )
          : trans.__('Close this panel, or choose another run.')}
      </EmptyState>
    );
  }
  if (model.error || run.state === 'error') {
    return (
      <EmptyState title={trans.__('The picture could not be drawn')}>
        {model.error || run.error}
      </EmptyState>
    );
  }
  return (
    <div
      className="jp-TdbgSpinner"
      role="status"
      aria-label={trans.__('Drawing')}
    />
  );
}

/** Whether the picture may be older than the run. */
export function outdated(props: IViewFootProps): boolean {
  const { model, service } = props;
  return (
    model.asOf !== null &&
    model.run.summary?.status === 'running' &&
    (service.connection.isStale || model.error !== '')
  );
}
