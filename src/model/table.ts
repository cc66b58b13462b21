/**
 * The numbers of a figure as rows and columns, for those who cannot or would rather not see it.
 */
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { IFigureJson } from '../api/wire';

/** Most rows of a table. */
export const MAX_ROWS = 200;

/** Most columns of a table, besides the one with the row headers. */
export const MAX_COLUMNS = 16;

/** A value of a figure: a number, or a word. */
export type Cell = number | string | null;

/** One table: what belongs together in a figure. */
export interface ITable {
  readonly title: string;
  /** The first is the header of the row headers. */
  readonly columns: ReadonlyArray<string>;
  /** As many cells as columns, the row header first. */
  readonly rows: ReadonlyArray<ReadonlyArray<Cell>>;
  /** Number of rows and columns of numbers in the figure; those left out were chosen evenly. */
  readonly outOf: readonly [number, number];
}

/** The tables of a figure: one for all lines that share an x axis, one for each heat map. */
export function figureTables(figure: IFigureJson): ReadonlyArray<ITable> {
  const tables: ITable[] = [];
  const lines: Private.ILine[] = [];
  for (const trace of figure.data.filter(Private.hasNumbers)) {
    const z = Private.matrix(trace['z']);
    if (z.length > 0) {
      tables.push(Private.heatTable(figure, trace, z));
    } else {
      const line = Private.line(figure, trace);
      if (line.x.length > 0) {
        lines.push(line);
      }
    }
  }
  if (lines.length > 0) {
    tables.unshift(Private.lineTable(figure, lines));
  }
  return tables;
}

/** Indices of at most `most` of `count`, evenly chosen, first and last kept. */
export function evenly(count: number, most: number): ReadonlyArray<number> {
  if (count <= most) {
    return Array.from({ length: count }, (_, i) => i);
  }
  return Array.from({ length: most }, (_, i) =>
    Math.round((i * (count - 1)) / (most - 1))
  );
}

namespace Private {
  /** One line, or one set of points or bars. */
  export interface ILine {
    readonly name: string;
    /** What stands along x, where the axis does not say it. */
    readonly header: string;
    readonly x: ReadonlyArray<Cell>;
    readonly y: ReadonlyArray<Cell>;
  }

  const ARRAYS: {
    readonly [dtype: string]: new (buffer: ArrayBuffer) => ArrayLike<number>;
  } = {
    f8: Float64Array,
    f4: Float32Array,
    i4: Int32Array,
    u4: Uint32Array,
    i2: Int16Array,
    u2: Uint16Array,
    i1: Int8Array,
    u1: Uint8Array
  };

  export function line(figure: IFigureJson, trace: JSONObject): ILine {
    const { name, header, y: own } = told(trace);
    const x = numbers(trace, 'x');
    const y = numbers(trace, 'y');
    return {
      name: plain(name ?? trace['name']),
      header: plain(header),
      x,
      y: (own ? y : named(figure, trace, y)).slice(0, x.length)
    };
  }

  /** Whether it is more than the edge or the ground of another trace. */
  export function hasNumbers(trace: JSONObject): boolean {
    return told(trace)['skip'] !== true;
  }

  /** What a view says of the numbers of a trace that is drawn elsewhere than where they stand. */
  function told(trace: JSONObject): JSONObject {
    return (((trace['meta'] ?? {}) as JSONObject)['table'] as JSONObject) ?? {};
  }

  /** The numbers along an axis: those drawn, or the field, or the column of one, that the view names. */
  function numbers(trace: JSONObject, axis: 'x' | 'y'): ReadonlyArray<Cell> {
    const [field, column] = String(told(trace)[axis] ?? axis).split('.');
    return column === undefined
      ? cells(trace[field])
      : matrix(trace[field]).map(row => row[Number(column)]);
  }

  export function lineTable(
    figure: IFigureJson,
    lines: ReadonlyArray<ILine>
  ): ITable {
    const kept = evenly(lines.length, MAX_COLUMNS).map(i => lines[i]);
    const values = kept.map(
      ({ x, y }) => new Map(x.map((at, i) => [at, y[i] ?? null]))
    );
    const places = [...new Set(kept.flatMap(({ x }) => x))].sort((a, b) =>
      typeof a === 'number' && typeof b === 'number' ? a - b : 0
    );
    return {
      title: titleOf(figure),
      columns: [
        kept[0].header || axisTitle(figure, 'xaxis'),
        ...kept.map(({ name }, i) => name || String(i + 1))
      ],
      rows: evenly(places.length, MAX_ROWS).map(i => [
        places[i],
        ...values.map(column => column.get(places[i]) ?? null)
      ]),
      outOf: [places.length, lines.length]
    };
  }

  export function heatTable(
    figure: IFigureJson,
    trace: JSONObject,
    z: ReadonlyArray<ReadonlyArray<Cell>>
  ): ITable {
    // Where colours stand for something else, the values themselves travel with them.
    const isTold = told(trace)['y'] !== undefined;
    const custom = matrix(isTold ? undefined : trace['customdata']);
    const values = custom.length === z.length ? custom : z;
    const x = centres(cells(trace['x']), z[0].length);
    const places = centres(numbers(trace, 'y'), z.length);
    const y = isTold ? places : named(figure, trace, places);
    const columns = evenly(z[0].length, MAX_COLUMNS);
    const bar = trace['colorbar'] as JSONObject | undefined;
    return {
      title: textOf(bar?.['title']) || plain(trace['name']) || titleOf(figure),
      columns: [
        [axisTitle(figure, 'yaxis'), axisTitle(figure, 'xaxis')]
          .filter(Boolean)
          .join(' \\ '),
        ...columns.map(i => String(x[i] ?? i))
      ],
      rows: evenly(values.length, MAX_ROWS).map(i => [
        y[i] ?? i,
        ...columns.map(j => values[i][j] ?? null)
      ]),
      outOf: [values.length, z[0].length]
    };
  }

  /** A list of values, however it is spelt. */
  function cells(value: JSONValue | undefined): ReadonlyArray<Cell> {
    if (Array.isArray(value)) {
      return value.map(cell);
    }
    return Array.from(typed(value)?.values ?? []);
  }

  /** Rows of values, however they are spelt; none when it is something else. */
  export function matrix(
    value: JSONValue | undefined
  ): ReadonlyArray<ReadonlyArray<Cell>> {
    if (Array.isArray(value)) {
      const rows = value.filter(Array.isArray).map(row => row.map(cell));
      return rows.length > 0 && rows[0].length > 0 ? rows : [];
    }
    const array = typed(value);
    const [height, width] = array?.shape ?? [];
    if (!array || !(height > 0) || !(width > 0)) {
      return [];
    }
    return Array.from({ length: height }, (_, i) =>
      Array.from({ length: width }, (_, j) => array.values[i * width + j])
    );
  }

  /** Plotly's base64 form of an array. */
  function typed(value: JSONValue | undefined): {
    readonly values: ArrayLike<number>;
    readonly shape: ReadonlyArray<number>;
  } | null {
    const { dtype, bdata, shape } = (value ?? {}) as JSONObject;
    const kind = typeof dtype === 'string' ? ARRAYS[dtype] : undefined;
    if (!kind || typeof bdata !== 'string') {
      return null;
    }
    const bytes = Uint8Array.from(atob(bdata), char => char.charCodeAt(0));
    return {
      values: new kind(bytes.buffer),
      shape: String(shape ?? '')
        .split(',')
        .map(Number)
    };
  }

  /** Centres of cells, where their edges are given. */
  function centres(
    places: ReadonlyArray<Cell>,
    count: number
  ): ReadonlyArray<Cell> {
    if (places.length !== count + 1) {
      return places;
    }
    return places
      .slice(1)
      .map((end, i) => (Number(places[i]) + Number(end)) / 2);
  }

  /** The words of the y axis, where each of these places has one. */
  function named(
    figure: IFigureJson,
    trace: JSONObject,
    places: ReadonlyArray<Cell>
  ): ReadonlyArray<Cell> {
    const id = plain(trace['yaxis']).replace(/^y/, 'yaxis') || 'yaxis';
    const axis = (figure.layout[id] ?? {}) as JSONObject;
    const words = cells(axis['ticktext']);
    const ticks = new Map(
      cells(axis['tickvals']).map((at, i) => [rounded(at), words[i]])
    );
    return places.every(at => ticks.has(rounded(at)))
      ? places.map(at => ticks.get(rounded(at)) ?? at)
      : places;
  }

  function rounded(place: Cell): string {
    return typeof place === 'number' ? place.toFixed(6) : String(place);
  }

  function cell(value: JSONValue): Cell {
    return typeof value === 'number' || value === null
      ? value
      : plain(value as string);
  }

  function titleOf(figure: IFigureJson): string {
    return textOf(figure.layout['title']);
  }

  function axisTitle(figure: IFigureJson, axis: string): string {
    const { title } = (figure.layout[axis] ?? {}) as JSONObject;
    return textOf(title);
  }

  function textOf(title: JSONValue | undefined): string {
    return plain(
      typeof title === 'string' ? title : ((title ?? {}) as JSONObject)['text']
    );
  }

  /** Text without Plotly's mark-up. */
  function plain(text: JSONValue | undefined): string {
    return typeof text === 'string' || typeof text === 'number'
      ? String(text)
          .replace(/<[^>]*>/g, ' ')
          .replace(/&lt;/g, '<')
          .replace(/&gt;/g, '>')
          .replace(/&amp;/g, '&')
          .trim()
      : '';
  }
}
