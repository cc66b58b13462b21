/**
 * The labels of a short vertical axis: Plotly writes at least five, and all that a view chose one by one,
 * however near they are.
 */
import type { JSONObject, JSONValue } from '@lumino/coreutils';

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
    const wanted = Number(axis['nticks'] ?? Infinity);
    return most < LEAST_CHOSEN
      ? { ...axis, nticks: Math.min(Math.max(most, 2), wanted) }
      : axis;
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

/** Width of a letter of a label, px. */
const LETTER = 5.5;

/** Share of a narrow picture that names beside it may take. */
const SHARE = 0.4;

/**
 * The labels of an axis of names beside a narrow picture: shortened in the middle, which Plotly would cut off
 * at the edge, and as many as there is room for.
 *
 * @param names - all of them, in their order
 * @param length - of the axis, px
 * @param width - of the picture, px
 */
export function shortNames(
  names: ReadonlyArray<string>,
  length: number,
  width: number
): JSONObject {
  const most = Math.max(5, Math.floor((SHARE * width) / LETTER));
  if (names.every(name => name.length <= most)) {
    return {};
  }
  const stride = Math.max(1, Math.ceil((names.length * LABEL_HEIGHT) / length));
  const shown = names.filter((_, index) => index % stride === 0);
  return {
    tickmode: 'array',
    tickvals: [...shown],
    ticktext: telling(names, shown, most).map(name => bothEnds(name, most))
  };
}

/** `shown` without how all names end, and from the number of their layer on where one is too long with the rest. */
function telling(
  names: ReadonlyArray<string>,
  shown: ReadonlyArray<string>,
  most: number
): ReadonlyArray<string> {
  const ending = sharedEnding(names).length;
  const bare = shown.map(name => name.slice(0, name.length - ending));
  return bare.every(name => name.length <= most)
    ? bare
    : bare.map(name => name.replace(BEFORE_NUMBER, '…'));
}

/** The last part of all names, with its dot, such as `.weight`; empty where they differ in it. */
function sharedEnding(names: ReadonlyArray<string>): string {
  const ending = /\.[^.]*$/.exec(names[0])?.[0] ?? '';
  return names.every(name => name.endsWith(ending)) ? ending : '';
}

/** The names along the y axis of a trace, if it has names there. */
export function namesOf(y: JSONValue | undefined): ReadonlyArray<string> {
  return Array.isArray(y)
    ? y.filter((name): name is string => typeof name === 'string')
    : [];
}

/** Modules before the number of a layer: `model.layers.` of `model.layers.12.mlp`. */
const BEFORE_NUMBER = /^(?:[^.]*\.)+?(?=\d+\.)/;

/** Both ends of a name that is too long. */
function bothEnds(name: string, most: number): string {
  if (name.length <= most) {
    return name;
  }
  const head = Math.ceil((most - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}
