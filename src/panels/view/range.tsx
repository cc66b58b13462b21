/**
 * The part of the time that a picture shows, and the ways out of it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { formatDuration } from '../../model/format';
import type { Seconds, TimeRange } from '../../model/timeRange';

/** How much more *Zoom out* shows. */
const WIDER = 4;

/** What the bar needs. */
export interface IRangeBarProps {
  readonly range: Seconds;
  readonly time: TimeRange;
  readonly trans: TranslationBundle;
}

/** One line: from where, how long, wider, back. */
export function RangeBar(props: IRangeBarProps): JSX.Element {
  const { range, time, trans } = props;
  const [low, high] = range;
  return (
    <div
      className="jp-TdbgTimeRange"
      role="group"
      aria-label={trans.__('Range')}
    >
      <span className="jp-TdbgTimeRange-words">
        {trans.__(
          'Pictures over time show %1 from %2 s on',
          formatDuration(1000 * (high - low)),
          low.toFixed(high - low < 0.01 ? 6 : 3)
        )}
      </span>
      <button className="jp-TdbgLink" onClick={() => time.widen(WIDER)}>
        {trans.__('Zoom out')}
      </button>
      <button
        className="jp-TdbgLink"
        onClick={() => {
          time.value = null;
        }}
      >
        {trans.__('Back to the latest')}
      </button>
    </div>
  );
}
