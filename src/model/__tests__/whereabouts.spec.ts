import { describe, expect, it } from 'vitest';

import { summary } from '../../api/__tests__/fake';
import { whereabouts } from '../whereabouts';

describe('whereabouts', () => {
  const told = (
    ...runs: ReadonlyArray<readonly [id: string, name: string, path: string]>
  ): object =>
    Object.fromEntries(
      whereabouts(
        runs.map(([id, name, path]) =>
          summary({ id, name, path, root: 'work' })
        )
      )
    );

  it('are told of runs of the same name only', () => {
    expect(
      told(['1', 'cnn', 'a/cnn'], ['2', 'cnn', 'b/cnn'], ['3', 'mlp', 'b/mlp'])
    ).toEqual({ 1: 'a', 2: 'b' });
  });

  it('are the folders that differ', () => {
    expect(
      told(
        ['1', 'cnn', 'tries/2026/monday/cnn'],
        ['2', 'cnn', 'tries/2026/tuesday/cnn'],
        ['3', 'cnn', 'tries/2026/tuesday/again/cnn']
      )
    ).toEqual({ 1: 'monday', 2: 'tuesday', 3: 'tuesday/again' });
  });

  it('have the folder of the run in it where its name was changed', () => {
    expect(told(['1', 'best', 'runs/17'], ['2', 'best', 'runs/18'])).toEqual({
      1: '17',
      2: '18'
    });
  });

  it('tell the id where the place says nothing', () => {
    expect(told(['0123456789', 'cnn', '.'], ['1', 'cnn', 'old/cnn'])).toEqual({
      '0123456789': '012345',
      1: 'old'
    });
  });

  it('tell the root where runs lie at the same place below several', () => {
    const runs = ['left', 'right'].map(root =>
      summary({ id: root, name: 'cnn', path: 'cnn', root })
    );
    expect(Object.fromEntries(whereabouts(runs))).toEqual({
      left: 'left',
      right: 'right'
    });
  });
});
