import { expect, it, vi } from 'vitest';

import { TimeRange } from '../timeRange';

it('tells of a change once', () => {
  const range = new TimeRange();
  const told = vi.fn();
  range.changed.connect(told);
  range.value = [3, 5];
  range.value = [3, 5];
  expect(told).toHaveBeenCalledTimes(1);
  range.value = null;
  expect(told).toHaveBeenCalledTimes(2);
});

it('is ordered and never empty', () => {
  const range = new TimeRange();
  range.value = [5, 3];
  expect(range.value).toEqual([3, 5]);
  range.value = [4, 4];
  expect(range.value![1]).toBeGreaterThan(4);
});

it('widens around its middle, but not to before the start', () => {
  const range = new TimeRange();
  range.widen(2);
  expect(range.value).toBeNull();
  range.value = [10, 12];
  range.widen(2);
  expect(range.value).toEqual([9, 13]);
  range.widen(10);
  expect(range.value).toEqual([0, 31]);
});
