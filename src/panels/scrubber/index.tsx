/**
 * The controls of the step cursor: a slider over the saved steps, play and follow.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { followIcon, pauseIcon, playIcon } from '../../icons';
import type { StepCursor } from '../../model/cursor';
import { formatStep } from '../../model/format';
import { useSignals } from '../signals';
import { stepWords } from '../words';

/** What the controls need. */
export interface IScrubberProps {
  readonly cursor: StepCursor;
  readonly trans: TranslationBundle;
}

/** The slider alone; arrows move from one saved step to the next. */
export function StepSlider(props: IScrubberProps): JSX.Element {
  const { cursor, trans } = props;
  useSignals(cursor.changed);
  const { steps, step, following } = cursor;
  const index = Math.max(0, nearestIndex(steps, step));
  const last = Math.max(0, steps.length - 1);
  const share = last > 0 ? (index / last) * 100 : 100;
  return (
    <input
      type="range"
      className={`jp-TdbgSlider${following ? ' jp-mod-following' : ''}`}
      style={{ ['--jp-tdbg-share' as string]: `${share}%` }}
      min={0}
      max={Math.max(1, last)}
      step={1}
      value={last > 0 ? index : 1}
      disabled={steps.length < 2}
      aria-label={trans.__('Step')}
      aria-valuetext={
        following && step >= 0
          ? trans.__('Step %1, following the run', formatStep(step))
          : stepWords(step, false, trans)
      }
      title={stepWords(step, false, trans)}
      onChange={event => cursor.set(steps[Number(event.target.value)])}
    />
  );
}

/** Play and follow. */
export function StepButtons(
  props: IScrubberProps & { readonly live: boolean }
): JSX.Element {
  const { cursor, trans, live } = props;
  useSignals(cursor.changed);
  const { following, playing } = cursor;
  const followLabel = live
    ? trans.__('Follow the run')
    : trans.__('Go to the last step');
  return (
    <span className="jp-TdbgStepButtons">
      <button
        className="jp-TdbgIconButton"
        disabled={cursor.steps.length < 2}
        aria-pressed={playing}
        title={playing ? trans.__('Pause') : trans.__('Play through the steps')}
        aria-label={
          playing ? trans.__('Pause') : trans.__('Play through the steps')
        }
        onClick={() => (playing ? cursor.pause() : cursor.play())}
      >
        {playing ? (
          <pauseIcon.react tag="span" />
        ) : (
          <playIcon.react tag="span" />
        )}
      </button>
      <button
        className={`jp-TdbgIconButton jp-TdbgFollow${
          following ? ' jp-mod-on' : ''
        }`}
        aria-pressed={following}
        title={followLabel}
        aria-label={followLabel}
        onClick={() => cursor.follow()}
      >
        <followIcon.react tag="span" />
        <span className="jp-TdbgFollow-word">
          {live ? trans.__('Follow') : trans.__('Last')}
        </span>
      </button>
    </span>
  );
}

/** Index of the step nearest to `step`. */
function nearestIndex(steps: ReadonlyArray<number>, step: number): number {
  let best = -1;
  steps.forEach((candidate, i) => {
    if (best < 0 || Math.abs(candidate - step) < Math.abs(steps[best] - step)) {
      best = i;
    }
  });
  return best;
}
