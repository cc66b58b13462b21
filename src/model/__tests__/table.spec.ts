import { describe, expect, it } from 'vitest';

import type { IFigureJson } from '../../api/wire';
import { MAX_COLUMNS, MAX_ROWS, evenly, figureTables } from '../table';

/** Plotly's base64 form of `values`. */
function typed(values: ReadonlyArray<number>, shape?: string) {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  const bdata = btoa(String.fromCharCode(...bytes));
  return { dtype: 'f4', bdata, ...(shape ? { shape } : {}) };
}

describe('figureTables()', () => {
  it('joins lines by their x, and leaves cells empty where a line has no point', () => {
    const [table] = figureTables({
      data: [
        { name: '<b>loss</b>', x: [0, 10], y: [2, 1] },
        { name: 'a &lt; b', x: typed([10, 20]), y: typed([0.5, 0.25]) }
      ],
      layout: { title: { text: 'Scalars' }, xaxis: { title: { text: 'Step' } } }
    });
    expect(table.title).toBe('Scalars');
    expect(table.columns).toEqual(['Step', 'loss', 'a < b']);
    expect(table.rows).toEqual([
      [0, 2, null],
      [10, 1, 0.5],
      [20, null, 0.25]
    ]);
  });

  it('calls the rows what the view says that they are', () => {
    const meta = { table: { header: 'Run', x: 'text', y: 'customdata' } };
    const [table] = figureTables({
      data: [
        { name: 'lr', x: [1], y: [2], text: ['a'], customdata: [0.1], meta },
        { name: 'loss', visible: false, x: ['a', 'b'], y: ['2', 'NaN'] }
      ],
      layout: { xaxis: { title: { text: 'lr' } } }
    });
    expect(table.columns).toEqual(['Run', 'lr', 'loss']);
    expect(table.rows).toEqual([
      ['a', 0.1, '2'],
      ['b', null, 'NaN']
    ]);
  });

  it('reads a heat map, with the values behind its colours', () => {
    const [table] = figureTables({
      data: [
        {
          z: [
            [1, 2],
            [3, 4]
          ],
          customdata: typed([0.1, 0.2, 0.3, null as unknown as number], '2, 2'),
          x: [0, 10, 20],
          y: ['fc1', 'fc2'],
          colorbar: { title: { text: 'Norm' } }
        }
      ],
      layout: { xaxis: { title: { text: 'Step' } } }
    });
    expect(table.title).toBe('Norm');
    expect(table.columns).toEqual(['Step', '5', '15']);
    expect(table.rows[0][0]).toBe('fc1');
    expect(table.rows[0][1]).toBeCloseTo(0.1);
    expect(table.rows[1][1]).toBeCloseTo(0.3);
  });

  it('takes numbers from where the view says that they are, and leaves out edges', () => {
    const customdata = typed([3, 0.5, 4, 0.25], '2, 2');
    const table = { x: 'customdata.0', y: 'customdata.1', name: 'min' };
    const heat = { table: { y: 'customdata.0' } };
    const [lines, share] = figureTables({
      data: [
        { name: 'both', x: [0, 1], y: [7, 8], customdata, meta: { table } },
        { name: 'edge', x: [0, 1], y: [7, 8], meta: { table: { skip: true } } },
        { z: [[1], [2]], x: [5], y: [7, 8], customdata, meta: heat }
      ],
      layout: { yaxis: { tickvals: [0.5, 0.25], ticktext: ['a', 'b'] } }
    } as unknown as IFigureJson);
    expect(lines.columns.slice(1)).toEqual(['min']);
    expect(lines.rows).toEqual([
      [3, 0.5],
      [4, 0.25]
    ]);
    expect(share.rows).toEqual([
      [3, 1],
      [4, 2]
    ]);
  });

  it('tells rows by the words of their axis, where each has one', () => {
    const [lines, heat] = figureTables({
      data: [
        { name: 'step', x: [1, 2], y: [0, 0] },
        { name: 'forward', x: [0, 1], y: [0.64, 1.36], z: [[5]] },
        { name: 'CPU', x: [1, 2], y: [0, 60], yaxis: 'y2' }
      ],
      layout: {
        yaxis: { tickvals: [1, 0], ticktext: ['forward', 'step'] },
        yaxis2: { tickvals: [0, 50], ticktext: ['none', 'half'] }
      }
    });
    expect(lines.rows).toEqual([
      [1, 'step', 0],
      [2, 'step', 60]
    ]);
    expect(heat.rows).toEqual([['forward', 5]]);
  });

  it('is bounded, first and last kept', () => {
    const many = Array.from({ length: 5000 }, (_, i) => i);
    const [lines, heat] = figureTables({
      data: [
        { x: many, y: many },
        { x: many, y: many, z: many.map(() => many.slice(0, 40)) }
      ],
      layout: {}
    });
    expect(lines.rows.length).toBe(MAX_ROWS);
    expect(lines.rows[0][0]).toBe(0);
    expect(lines.rows[MAX_ROWS - 1][0]).toBe(4999);
    expect(lines.outOf).toEqual([5000, 1]);
    expect(heat.rows.length).toBe(MAX_ROWS);
    expect(heat.columns.length).toBe(MAX_COLUMNS + 1);
  });

  it('is empty for a figure without data', () => {
    expect(figureTables({ data: [], layout: {} })).toEqual([]);
    expect(figureTables({ data: [{ type: 'pie' }], layout: {} })).toEqual([]);
  });
});

describe('evenly()', () => {
  it('keeps all when there are few', () => {
    expect(evenly(3, 5)).toEqual([0, 1, 2]);
    expect(evenly(0, 5)).toEqual([]);
    expect(evenly(9, 3)).toEqual([0, 4, 8]);
  });
});
