import { beforeEach, describe, expect, it, vi } from 'vitest';

import { summary } from '../../api/__tests__/fake';
import { ChosenRuns } from '../chosen';
import { RunsModel } from '../runs';

describe('ChosenRuns', () => {
  let runs: RunsModel;
  let chosen: ChosenRuns;
  const ids = (): string => chosen.all.map(({ id }) => id).join('');

  beforeEach(() => {
    runs = new RunsModel();
    // The youngest is listed first: a, b, c, d, e.
    runs.setAll(
      [...'abcde'].map((id, i) =>
        summary({ id, name: `named-${id}`, created_ns: 10 - i })
      )
    );
    chosen = new ChosenRuns(runs);
  });

  it('has the open run along with the first that is chosen', () => {
    chosen.toggle('d', 'b');
    expect(ids()).toBe('bd');
    chosen.toggle('a', 'b');
    chosen.toggle('b', 'b');
    expect(ids()).toBe('ad');
  });

  it('does not choose the open run where the list does not show it', () => {
    runs.filter = 'named-d';
    chosen.toggle('d', 'b');
    expect(ids()).toBe('d');
  });

  it('has the open run no longer when it is chosen again', () => {
    chosen.toggle('b', 'b');
    expect(ids()).toBe('');
  });

  it('extends in both directions from where it began', () => {
    chosen.extend('d', 'b');
    expect(ids()).toBe('bcd');
    chosen.extend('a', 'e');
    expect(ids()).toBe('ab');
    chosen.toggle('d', 'b');
    chosen.extend('e', 'b');
    expect(ids()).toBe('de');
    chosen.clear();
    chosen.extend('c', null);
    expect(ids()).toBe('c');
  });

  it('leaves out what the filter hides and what is gone', () => {
    chosen.addAll();
    expect(ids()).toBe('abcde');
    runs.filter = 'named-c';
    expect(ids()).toBe('c');
    runs.filter = '';
    runs.remove('c');
    expect(ids()).toBe('abde');
  });

  it('tells when it changes, and only then', () => {
    const told = vi.fn();
    chosen.changed.connect(told);
    chosen.clear();
    expect(told).not.toHaveBeenCalled();
    chosen.toggle('a', null);
    chosen.clear();
    expect(told).toHaveBeenCalledTimes(2);
  });
});
