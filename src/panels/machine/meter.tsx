/**
 * One meter: a word, a bar, a number, and a line of the last two minutes.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IMeter, MeterPoint } from '../../model/machine';
import type { ISparkFrame } from '../sparkline';
import { Sparkline } from '../sparkline';
import { meterName, meterValue } from './words';

/** Width of the line, px. */
const LINE_WIDTH = 40;

/** A memory as full as this is in danger. */
const FULL = 0.95;

/** A meter; without a reading it says so. */
export function Meter(props: {
  readonly meter: IMeter;
  /** Name of its GPU. */
  readonly device: string;
  /** What it tells at length. */
  readonly note: string;
  readonly history: ReadonlyArray<MeterPoint>;
  readonly frame: ISparkFrame;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { meter, device, note, history, frame, trans } = props;
  const { kind, share } = meter;
  const name = meterName(meter, device, trans);
  const label = kind === 'gpu-memory' ? trans.__('memory') : name;
  if (share === null) {
    return (
      <div className={`jp-TdbgMeter jp-mod-${kind}`}>
        <span className="jp-TdbgMeter-name">{label}</span>
        <span className="jp-TdbgMeter-nothing">{note}</span>
      </div>
    );
  }
  const isFull = meter.bytes !== null && share >= FULL;
  return (
    <div
      className={`jp-TdbgMeter jp-mod-${kind}${isFull ? ' jp-mod-full' : ''}`}
      role="meter"
      tabIndex={0}
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
      aria-valuetext={note}
      title={`${name}: ${note}`}
    >
      <span className="jp-TdbgMeter-name">{label}</span>
      <span className="jp-TdbgMeter-bar">
        <span style={{ width: `${share * 100}%` }} />
      </span>
      <span className="jp-TdbgMeter-value">{meterValue(meter)}</span>
      <span className="jp-TdbgMeter-line">
        <Sparkline
          points={history}
          label={trans.__('Last two minutes')}
          width={LINE_WIDTH}
          frame={frame}
        />
      </span>
    </div>
  );
}
