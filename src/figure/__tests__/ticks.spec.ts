import { describe, expect, it } from 'vitest';

import { shortNames, withoutOverlap } from '../ticks';

describe('withoutOverlap()', () => {
  const rows = {
    tickvals: [3, 2, 1, 0],
    ticktext: ['data', 'forward', 'backward', 'optimizer'],
    range: [-0.5, 3.5]
  };

  it('keeps all labels where there is room', () => {
    expect(withoutOverlap(rows, 60)).toEqual(rows);
  });

  it('leaves out labels that would lie over the one above', () => {
    expect(withoutOverlap(rows, 28).ticktext).toEqual(['data', 'backward']);
    expect(withoutOverlap(rows, 28).tickvals).toEqual([3, 1]);
    expect(withoutOverlap(rows, 4).ticktext).toEqual(['data']);
  });

  it('goes by where labels stand, not by their number', () => {
    const near = { tickvals: [0, 1, 10], ticktext: ['0', '1', '10'] };
    expect(withoutOverlap(near, 60).ticktext).toEqual(['10', '1']);
  });

  it('asks for few labels where there is little room, also where the view would have more', () => {
    const axis = { title: { text: 'Loss' } };
    expect(withoutOverlap(axis, 70)).toEqual({ ...axis, nticks: 3 });
    expect(withoutOverlap(axis, 20)).toEqual({ ...axis, nticks: 2 });
    expect(withoutOverlap({ nticks: 4 }, 20)).toEqual({ nticks: 2 });
    expect(withoutOverlap({ nticks: 2 }, 70)).toEqual({ nticks: 2 });
    expect(withoutOverlap({ nticks: 4 }, 200)).toEqual({ nticks: 4 });
  });

  it('shows no labels where two have no room', () => {
    const axis = { title: { text: 'Loss' } };
    const bare = { ...axis, showticklabels: false, ticks: '' };
    expect(withoutOverlap(axis, 12)).toEqual(bare);
    expect(withoutOverlap(axis, -5)).toEqual(bare);
  });

  it('leaves other axes alone', () => {
    const axis = { title: { text: 'Loss' } };
    expect(withoutOverlap(axis, 200)).toBe(axis);
    const one = { tickvals: [1], ticktext: ['1'] };
    expect(withoutOverlap(one, 20)).toBe(one);
  });
});

describe('shortNames()', () => {
  const names = ['0.attention.weight', '1.attention.weight', '2.mlp.bias'];

  it('shortens in the middle what has no room beside a narrow picture', () => {
    expect(shortNames(names, 300, 150)).toEqual({
      tickmode: 'array',
      tickvals: names,
      ticktext: ['0.att…ight', '1.att…ight', '2.mlp.bias']
    });
  });

  it('keeps the number of a layer, and leaves out how all of them end', () => {
    const long = [3, 12].flatMap(layer =>
      ['self_attn.q_proj', 'mlp.down_proj'].map(
        part => `model.layers.${layer}.${part}.weight`
      )
    );
    expect(shortNames(long, 300, 340)['ticktext']).toEqual([
      '…3.self_attn.q_proj',
      '…3.mlp.down_proj',
      '…12.self_attn.q_proj',
      '…12.mlp.down_proj'
    ]);
    // All alike, also those that there would be room for.
    const short = 'model.layers.3.norm.weight';
    expect(shortNames([short, ...long], 300, 340)['ticktext']).toContain(
      '…3.norm'
    );
  });

  it('tells no more of them than there is room for', () => {
    expect(shortNames(names, 22, 150)['tickvals']).toEqual([
      names[0],
      names[2]
    ]);
  });

  it('leaves short names to Plotly', () => {
    expect(shortNames(['fc1', 'fc2'], 300, 150)).toEqual({});
  });
});
