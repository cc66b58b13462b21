import { describe, expect, it } from 'vitest';

import { tensor } from '../../api/__tests__/fake';
import { ancestors, buildTree, leafLabel, visibleRows } from '../tree';

const GROUPS = {
  metrics: 'Metrics',
  optimizer: 'Optimizer',
  recorded: 'Recorded',
  cost: 'Cost'
};

const TENSORS = [
  tensor({ name: 'block.conv1.weight', kind: 'weight', module: 'block.conv1' }),
  tensor({
    name: 'gradient/block.conv1.weight',
    kind: 'gradient',
    module: 'block.conv1',
    findings: 2,
    severity: 'critical'
  }),
  tensor({
    name: 'activation/block',
    module: 'block',
    findings: 1,
    severity: 'warning'
  }),
  tensor({ name: 'loss/CrossEntropyLoss', kind: 'loss', module: '' }),
  tensor({ name: 'optimizer/lr/0', kind: 'optimizer', module: '' }),
  tensor({ name: 'latent', kind: 'custom', module: '' }),
  tensor({ name: 'tdbg/capture_ms', kind: 'cost', module: '' })
];

describe('buildTree()', () => {
  const tree = buildTree(TENSORS, GROUPS);

  it('puts metrics first, then modules, then the other groups', () => {
    expect(tree.map(node => node.label)).toEqual([
      'Metrics',
      'block',
      'Recorded',
      'Optimizer',
      'Cost'
    ]);
  });

  it('sums findings upwards', () => {
    expect(tree[1].findings).toBe(3);
  });

  it('tells the worst severity of what is below', () => {
    expect(tree[1].severity).toBe('critical');
    expect(tree[1].children[0].severity).toBe('warning');
    expect(tree[0].severity).toBeNull();
  });

  it('names leaves without their module', () => {
    const conv = tree[1].children.find(node => node.label === 'conv1');
    expect(conv?.children.map(node => node.label)).toEqual([
      'weight gradient',
      'weight'
    ]);
    expect(tree[1].children[0].label).toBe('output');
  });

  it('is empty for no tensors', () => {
    expect(buildTree([], GROUPS)).toEqual([]);
  });
});

describe('leafLabel()', () => {
  it('tells further outputs and inputs apart', () => {
    const at = (name: string, kind: string) =>
      leafLabel(tensor({ name, kind, module: 'conv1' }));
    expect(at('activation/conv1', 'activation')).toBe('output');
    expect(at('activation/conv1:1', 'activation')).toBe('output 1');
    expect(at('input/conv1', 'input')).toBe('input');
  });

  it('knows paths that are joined by slashes', () => {
    const at = (name: string, kind: string) =>
      leafLabel(tensor({ name, kind, module: 'block.dense' }));
    expect(at('block/dense/kernel', 'weight')).toBe('kernel');
    expect(at('gradient/block/dense/kernel', 'gradient')).toBe(
      'kernel gradient'
    );
    expect(at('activation/block/dense', 'activation')).toBe('output');
    expect(at('activation/block/dense:1', 'activation')).toBe('output 1');
    expect(at('optimizer/momentum/block/dense/kernel', 'optimizer')).toBe(
      'momentum of kernel'
    );
    expect(at('optimizer/update_ratio/block.dense.weight', 'optimizer')).toBe(
      'update_ratio of weight'
    );
  });

  it('tells what belongs to no module apart by its kind', () => {
    const at = (name: string, kind: string) =>
      leafLabel(tensor({ name, kind, module: '' }));
    expect(at('weight', 'weight')).toBe('weight');
    expect(at('gradient/weight', 'gradient')).toBe('weight gradient');
    expect(at('activation/Linear', 'activation')).toBe('Linear output');
    expect(at('loss/objective', 'loss')).toBe('objective');
    expect(at('codes/first', 'custom')).toBe('codes/first');
  });

  it('keeps the names people gave', () => {
    expect(
      leafLabel(tensor({ name: 'val/accuracy', kind: 'scalar', module: '' }))
    ).toBe('val/accuracy');
  });
});

describe('visibleRows()', () => {
  const tree = buildTree(TENSORS, GROUPS);

  it('shows what is expanded', () => {
    expect(visibleRows(tree, new Set()).length).toBe(5);
    const rows = visibleRows(tree, new Set(['block']));
    expect(rows.map(row => row.depth)).toEqual([0, 0, 1, 1, 0, 0, 0]);
    expect(rows[2]).toMatchObject({ position: 1, siblings: 2 });
  });

  it('shows matches of all words with their modules', () => {
    const rows = visibleRows(tree, new Set(), 'GRAD conv1');
    expect(rows.map(row => row.node.label)).toEqual([
      'block',
      'conv1',
      'weight gradient'
    ]);
    expect(visibleRows(tree, new Set(), 'nothing')).toEqual([]);
  });
});

describe('ancestors()', () => {
  it('names the modules above a tensor', () => {
    const tree = buildTree(TENSORS, GROUPS);
    expect(ancestors(tree, 'block.conv1.weight')).toEqual([
      'block',
      'block.conv1'
    ]);
  });
});
