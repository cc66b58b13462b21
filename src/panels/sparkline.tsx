/**
 * A few values as a small line.
 */
import * as React from 'react';

import type { WireNumber } from '../api/wire';
import { toNumber } from '../api/wire';

/** A place, such as a step, and the value there. */
export type SparkPoint = readonly [number, WireNumber];

/** What lies at the edges of the box. */
export interface ISparkFrame {
  readonly left: number;
  readonly right: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Points of the line in a box of the given size; broken where a value is not finite.
 *
 * @param frame - what is at the edges; the line spans the box when left out
 */
export function sparkPath(
  points: ReadonlyArray<SparkPoint>,
  width: number,
  height: number,
  frame?: ISparkFrame
): string {
  const values = points.map(
    ([place, value]) => [place, toNumber(value)] as const
  );
  const finite = values.filter(([, value]) => Number.isFinite(value));
  if (finite.length < 2) {
    return '';
  }
  const { left, right, low, high } = frame ?? Private.frameOf(finite);
  const across = right - left || 1;
  const up = high - low || 1;
  let path = '';
  let pen = 'M';
  for (const [place, value] of values) {
    if (!Number.isFinite(value)) {
      pen = 'M';
      continue;
    }
    const x = 1 + ((place - left) / across) * (width - 2);
    const y = 1 + (1 - (value - low) / up) * (height - 2);
    path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = 'L';
  }
  return path;
}

/** The line; nothing when there is too little to draw. */
export function Sparkline(props: {
  readonly points: ReadonlyArray<SparkPoint> | null;
  readonly label: string;
  readonly width?: number;
  readonly frame?: ISparkFrame;
}): JSX.Element | null {
  const { points, label, width = 56, frame } = props;
  const height = 16;
  const path = points ? sparkPath(points, width, height, frame) : '';
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
      aria-label={label}
    >
      <path d={path} />
    </svg>
  );
}

namespace Private {
  export function frameOf(
    points: ReadonlyArray<readonly [number, number]>
  ): ISparkFrame {
    const places = points.map(([place]) => place);
    const values = points.map(([, value]) => value);
    return {
      left: Math.min(...places),
      right: Math.max(...places),
      low: Math.min(...values),
      high: Math.max(...values)
    };
  }
}
