import { describe, expect, it } from 'vitest';

import { tensor } from '../../api/__tests__/fake';
import { RULES_TILE, defaultTiles, places } from '../dashboard/layout';
import { sparkPath } from '../sparkline';

describe('defaultTiles()', () => {
  const has = (): boolean => true;
  const names = (width: number) =>
    defaultTiles(has, [], width).map(row => row.map(tile => tile.view));

  it('has as many columns as the width allows', () => {
    expect(names(1200).map(row => row.length)).toEqual([3, 3]);
    expect(names(700).map(row => row.length)).toEqual([2, 2, 2]);
    expect(names(400).length).toBe(6);
  });

  it('leaves out what the server cannot draw, never the rules', () => {
    const rows = defaultTiles(() => false, [], 1200);
    expect(rows.flat().map(tile => tile.view)).toEqual([RULES_TILE]);
  });

  it('shows the output of the first layer with weights', () => {
    const rows = defaultTiles(
      has,
      [
        tensor({ name: 'activation/enlarge', module: 'enlarge' }),
        tensor({ name: 'activation/conv1', module: 'conv1' }),
        tensor({ name: 'conv1.weight', module: 'conv1', kind: 'weight' }),
        tensor({ name: 'activation/fc', module: 'fc' })
      ],
      1200
    );
    expect(rows[0][1].params).toEqual({ tensor: 'activation/conv1' });
  });

  it('shows the layer in trouble', () => {
    const rows = defaultTiles(
      has,
      [
        tensor({ name: 'activation/conv1', module: 'conv1' }),
        tensor({ name: 'conv1.weight', module: 'conv1', kind: 'weight' }),
        tensor({ name: 'activation/relu1', severity: 'critical' })
      ],
      1200
    );
    expect(rows[0][1].params).toEqual({ tensor: 'activation/relu1' });
  });

  it('shows predictions and features of boosted trees, which have no layers', () => {
    const custom = (name: string) => tensor({ name, kind: 'custom' });
    const known = ['gain', 'gain/age', 'weight', 'weight/age'].map(name =>
      custom(`feature_importance/${name}`)
    );
    const tiles = (...more: ReturnType<typeof custom>[]) =>
      defaultTiles(has, [...known, ...more], 1200).flat();
    expect(tiles().map(tile => tile.view)).toEqual([
      'scalars',
      'histogram',
      'overview',
      'timeline',
      RULES_TILE
    ]);
    expect(tiles()[1].params).toEqual({ tensor: 'feature_importance/gain' });
    expect(tiles()[2].params.regex).toBe('^feature_importance/gain/');
    expect(tiles(custom('predictions'))[1].params).toEqual({
      tensor: 'predictions'
    });
    const layer = tensor({ name: 'w', kind: 'weight' });
    expect(tiles(layer).length).toBe(6);
  });

  it('shows any activation when no layer learns', () => {
    const rows = defaultTiles(
      has,
      [tensor({ kind: 'weight' }), tensor({ name: 'activation/x' })],
      1200
    );
    expect(rows[0][1].params).toEqual({ tensor: 'activation/x' });
  });
});

describe('places()', () => {
  const rows = ['abc', 'de'].map(row =>
    [...row].map(view => ({ view, params: {} }))
  );
  const views = (height: number) =>
    places(rows, height).map(row =>
      row.map(tiles => tiles.map(tile => tile.view).join(''))
    );

  it('gives each tile one of its own where there is room', () => {
    expect(views(400)).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e']
    ]);
  });

  it('lets rows share theirs where they would be too low for a picture', () => {
    expect(views(300)).toEqual([['ad', 'be', 'c']]);
    expect(views(0)).toEqual([['ad', 'be', 'c']]);
  });

  it('keeps the tiles of a row that is longer than the one above', () => {
    const uneven = places([rows[1], rows[0]], 300).flat(2);
    expect(uneven.map(tile => tile.view).sort()).toEqual([...'abcde']);
  });

  it('has nothing to give where there are no tiles', () => {
    expect(places([], 300)).toEqual([]);
  });
});

describe('sparkPath()', () => {
  it('spans the box, the largest value on top', () => {
    expect(
      sparkPath(
        [
          [0, 1],
          [10, 3]
        ],
        12,
        12
      )
    ).toBe('M1.0 11.0L11.0 1.0');
  });

  it('breaks where the loss is not finite', () => {
    const path = sparkPath(
      [
        [0, 1],
        [1, 2],
        [2, 'NaN'],
        [3, 2],
        [4, 1]
      ],
      12,
      12
    );
    expect(path.split('M').length - 1).toBe(2);
  });

  it('keeps to the frame it is given', () => {
    const frame = { left: 0, right: 10, low: 0, high: 1 };
    const points = [
      [5, 0.5],
      [10, 1]
    ] as const;
    expect(sparkPath(points, 12, 12, frame)).toBe('M6.0 6.0L11.0 1.0');
  });

  it('draws nothing of less than two points', () => {
    expect(sparkPath([[0, 1]], 12, 12)).toBe('');
    expect(sparkPath([[0, null]], 12, 12)).toBe('');
  });
});
