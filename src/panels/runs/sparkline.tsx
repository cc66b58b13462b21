/**
 * The loss of a run as a small line.
 */
import * as React from 'react';

import type { WireNumber } from '../../api/wire';
import { toNumber } from '../../api/wire';

/** Points of the line in a box of the given size; broken where a value is not finite. */
export function sparkPath(
  points: ReadonlyArray<readonly [number, WireNumber]>,
  width: number,
  height: number
): string {
  const values = points.map(
    ([step, value]) => [step, toNumber(value)] as const
  );
  const finite = values.filter(([, value]) => Number.isFinite(value));
  if (finite.length < 2) {
    return '';
  }
  const steps = finite.map(([step]) => step);
  const heights = finite.map(([, value]) => value);
  const left = Math.min(...steps);
  const low = Math.min(...heights);
  const stepSpan = Math.max(...steps) - left || 1;
  const valueSpan = Math.max(...heights) - low || 1;
  let path = '';
  let pen = 'M';
  for (const [step, value] of values) {
    if (!Number.isFinite(value)) {
      pen = 'M';
      continue;
    }
    const x = 1 + ((step - left) / stepSpan) * (width - 2);
    const y = 1 + (1 - (value - low) / valueSpan) * (height - 2);
    path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = 'L';
  }
  return path;
}

/** The line; nothing when there is too little to draw. */
export function Sparkline(props: {
  readonly points: ReadonlyArray<readonly [number, WireNumber]> | null;
  readonly label: string;
}): JSX.Element | null {
  const [width, height] = [56, 16];
  const path = props.points ? sparkPath(props.points, width, height) : '';
  if (!path) {
    return null;
  }
  return (
    <svg
      className="jp-TdbgSparkline"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={props.label}
    >
      <path d={path} />
    </svg>
  );
}
