import { describe, expect, it } from 'vitest';

import { summary } from '../../api/__tests__/fake';
import type { IRunSummary } from '../../api/wire';
import { RunsModel } from '../runs';

describe('RunsModel', () => {
  const create = (): RunsModel => {
    const runs = new RunsModel();
    runs.setAll([
      summary({ id: 'old', name: 'baseline', created_ns: 1, tags: ['digits'] }),
      summary({ id: 'new', name: 'wide', created_ns: 3 }),
      summary({ id: 'live', name: 'deep', created_ns: 2, status: 'running' })
    ]);
    return runs;
  };

  it('lists running runs first, then the youngest', () => {
    expect(create().all.map(run => run.id)).toEqual(['live', 'new', 'old']);
  });

  it('sorts by name as people do, and by the last loss', () => {
    const runs = new RunsModel();
    const ids = (): string => runs.visible.map(run => run.id).join(' ');
    const at = (id: string, loss: IRunSummary['loss']): IRunSummary =>
      summary({ id, name: id, created_ns: Number(id.slice(3)), loss });
    runs.setAll([
      at('lr-10', [
        [0, 9],
        [5, 1]
      ]),
      at('lr-9', null),
      at('lr-2', [[0, 'nan']]),
      at('lr-1', [
        [0, 1],
        [5, 2]
      ])
    ]);
    expect(ids()).toBe('lr-10 lr-9 lr-2 lr-1');
    runs.order = 'name';
    expect(ids()).toBe('lr-1 lr-2 lr-9 lr-10');
    runs.order = 'loss';
    expect(ids()).toBe('lr-10 lr-1 lr-9 lr-2');
    runs.filter = 'lr-1';
    expect(ids()).toBe('lr-10 lr-1');
    runs.order = 'newest';
    expect(ids()).toBe('lr-10 lr-1');
  });

  it('filters by every word, in any of the texts', () => {
    const runs = create();
    runs.filter = 'DIGITS base';
    expect(runs.visible.map(run => run.id)).toEqual(['old']);
    for (const word of ['running', 'live']) {
      runs.filter = word;
      expect(runs.visible.map(run => run.id)).toEqual(['live']);
    }
    runs.filter = '';
    expect(runs.visible.length).toBe(3);
  });

  it('keeps the filter when the list changes', () => {
    const runs = create();
    runs.filter = 'wide';
    runs.put(summary({ id: 'x', name: 'wider' }));
    expect(runs.visible.map(run => run.id)).toEqual(['x', 'new']);
    runs.remove('x');
    expect(runs.visible.map(run => run.id)).toEqual(['new']);
  });

  it('shows the run that is to be renamed, whatever the filter', () => {
    const runs = create();
    runs.filter = 'wide';
    runs.renaming = 'new';
    expect(runs.filter).toBe('wide');
    runs.renaming = 'old';
    expect(runs.filter).toBe('');
    runs.filter = 'wide';
    runs.renaming = null;
    expect(runs.filter).toBe('wide');
  });

  it('knows whether a list has arrived', () => {
    const runs = new RunsModel();
    expect(runs.isLoaded).toBe(false);
    runs.setAll([]);
    expect(runs.isLoaded).toBe(true);
  });
});
