/**
 * The room that axis labels, legend and colour bars need around a picture, kept from one drawing to the next.
 */
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { IPlotElement } from './plotly';

/** The parts of a figure as it is handed to Plotly. */
interface IDrawing {
  readonly data: ReadonlyArray<JSONObject>;
  readonly layout: JSONObject;
}

/**
 * Finds the margins of a picture by letting Plotly measure them, and uses them again while they fit.
 *
 * #### Notes
 * Measuring takes a good part of a drawing: Plotly lays out every label, and then often draws again.
 * A live picture changes many times a second, its labels hardly ever; and without measuring anew it does
 * not jump by a pixel when they do. What is written around a picture is compared by number and length.
 */
export class Room {
  /** Measure in the next drawing. */
  forget(): void {
    this._margin = null;
    this._isMeasured = false;
  }

  /** `drawing` in the room known for it; as it is, to be measured, when there is none. */
  fit(drawing: IDrawing): IDrawing {
    const frame = around(drawing);
    if (frame !== this._frame) {
      this._frame = frame;
      this._margin = null;
    }
    if (this._margin === null) {
      this._isMeasured = true;
      return drawing;
    }
    const { layout } = drawing;
    const fixed: JSONObject = { ...layout, margin: this._margin };
    for (const name of Object.keys(layout).filter(isAxis)) {
      fixed[name] = { ...object(layout[name]), automargin: false };
    }
    return { ...drawing, layout: fixed };
  }

  /** Look at what was drawn. Whether it fits; when it does not, it is to be measured, and drawn once more. */
  check(plot: IPlotElement): boolean {
    const lengths = labelLengths(plot);
    if (this._margin === null) {
      if (this._isMeasured) {
        this._lengths = lengths;
        this._margin = drawnMargin(plot);
      }
      return true;
    }
    const fits = [...lengths].every(
      ([kind, length]) => length <= (this._lengths.get(kind) ?? 0)
    );
    if (!fits) {
      this.forget();
    }
    return fits;
  }

  private _frame = '';
  /** Whether the last drawing was one to measure. */
  private _isMeasured = false;
  private _lengths: ReadonlyMap<string, number> = new Map();
  private _margin: JSONObject | null = null;
}

/** What stands around a picture, but for the labels of its ticks. */
function around({ data, layout }: IDrawing): string {
  const traces = data.map(trace => [
    trace['type'],
    trace['name'],
    trace['showlegend'],
    object(trace['colorbar'])['title'],
    trace['coloraxis']
  ]);
  const axes = Object.keys(layout)
    .filter(isAxis)
    .map(name => {
      const axis = object(layout[name]);
      return [name, axis['title'], axis['domain'], axis['visible']];
    });
  return JSON.stringify([
    traces,
    axes,
    layout['margin'],
    layout['legend'],
    layout['showlegend'],
    layout['font']
  ]);
}

/** Letters of the longest text of each kind, by the class that Plotly gives to those of one axis. */
function labelLengths(plot: IPlotElement): ReadonlyMap<string, number> {
  const lengths = new Map<string, number>();
  for (const text of plot.querySelectorAll(
    'g.infolayer text, g[class$="tick"] text'
  )) {
    const kind = text.parentElement?.getAttribute('class') ?? '';
    const length = text.textContent?.length ?? 0;
    lengths.set(kind, Math.max(lengths.get(kind) ?? 0, length));
  }
  return lengths;
}

/** The margins that Plotly arrived at, px; null when it does not tell. */
function drawnMargin(plot: IPlotElement): JSONObject | null {
  const size = plot._fullLayout?.['_size'] as
    { readonly [side: string]: unknown } | undefined;
  const margin: JSONObject = { autoexpand: false };
  for (const side of ['l', 'r', 't', 'b']) {
    const room = size?.[side];
    if (typeof room !== 'number' || !Number.isFinite(room)) {
      return null;
    }
    margin[side] = room;
  }
  return margin;
}

function isAxis(name: string): boolean {
  return /^[xy]axis\d*$/.test(name);
}

function object(value: JSONValue | undefined): JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : {};
}
