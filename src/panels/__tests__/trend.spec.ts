import { describe, expect, it } from 'vitest';

import { stretch } from '../rules/trend';

describe('stretch', () => {
  it('is as wide as its share of the steps', () => {
    expect(stretch({ first: 50, last: 74 }, 99, 100)).toEqual([50, 25]);
  });

  it('can be seen however short it is, and stays inside', () => {
    const [left, width] = stretch({ first: 9999, last: 9999 }, 9999, 100);
    expect(width).toBeGreaterThanOrEqual(2);
    expect(left + width).toBeLessThanOrEqual(100);
  });

  it('is something in a run without steps', () => {
    expect(stretch({ first: 0, last: -1 }, -1, 100)).toEqual([0, 2]);
  });
});
