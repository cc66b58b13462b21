/**
 * Plotly, loaded when the first picture is drawn, and the little of it that is used here.
 */
import type { JSONObject } from '@lumino/coreutils';

/** An axis as drawn; internal to Plotly, hence everything is checked before use. */
export interface IDrawnAxis {
  readonly _offset?: number;
  readonly _length?: number;
  readonly type?: string;
  /** Data to pixels from the start of the axis. */
  readonly d2p?: (value: number) => number;
  /** Pixels from the start of the axis to data. */
  readonly p2d?: (pixel: number) => number | string;
  readonly range?: ReadonlyArray<number | string>;
}

/** The element that holds a plot. */
export interface IPlotElement extends HTMLDivElement {
  readonly _fullLayout?: { readonly [name: string]: unknown };
  on?(event: string, handler: (event: unknown) => void): void;
  removeAllListeners?(event: string): void;
}

/** The functions used. */
export interface IPlotly {
  react(
    node: HTMLElement,
    data: ReadonlyArray<JSONObject>,
    layout: JSONObject,
    config: JSONObject
  ): Promise<unknown>;
  relayout(node: HTMLElement, update: JSONObject): Promise<unknown>;
  purge(node: HTMLElement): void;
  downloadImage(node: HTMLElement, options: JSONObject): Promise<unknown>;
}

/** Loads Plotly once; a chunk of its own, so that Lab starts without it. */
export class PlotlyLoader {
  /** The library. */
  load(): Promise<IPlotly> {
    this._loading ??= this._import().catch((error: unknown) => {
      // A chunk that could not be fetched may be fetched later.
      this._loading = null;
      throw error;
    });
    return this._loading;
  }

  private async _import(): Promise<IPlotly> {
    const module = (await import('plotly.js-dist-min')) as unknown as {
      default?: IPlotly;
    } & IPlotly;
    return module.default ?? module;
  }

  private _loading: Promise<IPlotly> | null = null;
}

/** The axis called `name` (`x`, `x2`) as drawn on `node`, if it is. */
export function drawnAxis(
  node: IPlotElement,
  name: string
): Required<IDrawnAxis> | null {
  const key = `${name.charAt(0)}axis${name.slice(1)}`;
  const axis = node._fullLayout?.[key] as IDrawnAxis | undefined;
  return axis &&
    typeof axis._offset === 'number' &&
    typeof axis._length === 'number' &&
    typeof axis.d2p === 'function' &&
    typeof axis.p2d === 'function' &&
    Array.isArray(axis.range)
    ? (axis as Required<IDrawnAxis>)
    : null;
}

/** Top and height, px, of what is drawn above the axis called `name`. */
export function drawnSpan(
  node: IPlotElement,
  name: string
): readonly [number, number] {
  const size = node._fullLayout?.['_size'] as
    { t?: number; h?: number } | undefined;
  const top = size?.t ?? 0;
  const height = size?.h ?? 0;
  // Every y axis drawn against this x axis.
  const plots = node._fullLayout?.['_plots'] as
    | { [id: string]: { yaxis?: IDrawnAxis; xaxis?: { _id?: string } } }
    | undefined;
  const spans = Object.values(plots ?? {})
    .filter(plot => plot.xaxis?._id === name)
    .map(plot => plot.yaxis)
    .filter(
      (axis): axis is IDrawnAxis & { _offset: number; _length: number } =>
        typeof axis?._offset === 'number' && typeof axis._length === 'number'
    );
  if (spans.length === 0) {
    return [top, height];
  }
  const start = Math.min(...spans.map(axis => axis._offset));
  const end = Math.max(...spans.map(axis => axis._offset + axis._length));
  return [start, end - start];
}
