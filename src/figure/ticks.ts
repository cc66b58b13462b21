/**
 * The labels of a short vertical axis: Plotly writes at least five, and all that a view chose one by one,
 * however near they are.
 */
import type { JSONObject } from '@lumino/coreutils';

/** Room that a label takes along a vertical axis, px. */
const LABEL_HEIGHT = 11;

/** Number of labels that Plotly chooses at least. */
const LEAST_CHOSEN = 5;

/** Below this, two labels lie over each other, px. */
const ROOM_FOR_TWO = 1.5 * LABEL_HEIGHT;

/** `axis` without the labels that would lie over others where it is `length` px long. */
export function withoutOverlap(axis: JSONObject, length: number): JSONObject {
  const { tickvals, ticktext, range, type } = axis;
  if (!Array.isArray(tickvals) || !Array.isArray(ticktext)) {
    if (length < ROOM_FOR_TWO) {
      return { showticklabels: false, ticks: '', ...axis };
    }
    const most = Math.floor(length / (2 * LABEL_HEIGHT));
    return most < LEAST_CHOSEN ? { nticks: Math.max(most, 2), ...axis } : axis;
  }
  if (type === 'log') {
    return axis;
  }
  const places = tickvals.map(Number);
  const [low, high] = Array.isArray(range)
    ? range.map(Number)
    : [Math.min(...places), Math.max(...places)];
  const pixels = length / Math.abs(high - low);
  if (!Number.isFinite(pixels)) {
    return axis;
  }
  let last = -Infinity;
  const kept = places
    .map((_, index) => index)
    .sort((a, b) => places[b] - places[a])
    .filter(index => {
      const at = -places[index] * pixels;
      const isFree = at - last >= LABEL_HEIGHT;
      last = isFree ? at : last;
      return isFree;
    });
  return {
    ...axis,
    tickvals: kept.map(index => tickvals[index]),
    ticktext: kept.map(index => ticktext[index])
  };
}
