/**
 * A point of a figure that stands for a part of the time, such as a slow step.
 */
import type { Seconds } from '../model/timeRange';

/** A step and the part of the time around it. */
export interface IMoment {
  readonly step: number;
  readonly range: Seconds;
}

/** What a clicked point stands for; null when it is no such point. */
export function clickedMoment(event: unknown): IMoment | null {
  const { points } = event as { points?: ReadonlyArray<IClickedPoint> };
  const point = points?.[0];
  const step = Number(point?.customdata);
  const range = point?.data?.meta?.moments?.[point.pointIndex ?? -1];
  if (!range || !Number.isFinite(step)) {
    return null;
  }
  const [low, high] = range.map(Number);
  return low < high ? { step, range: [low, high] } : null;
}

/** What Plotly tells of a clicked point. */
interface IClickedPoint {
  readonly customdata?: unknown;
  readonly pointIndex?: number;
  readonly data?: {
    readonly meta?: { readonly moments?: ReadonlyArray<[number, number]> };
  };
}
