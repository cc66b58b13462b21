import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import { costFacts } from '../cost';

const trans = nullTranslator.load('tdbg_lab');

describe('costFacts()', () => {
  it('tells share, time, bytes, and a distance that was chosen', () => {
    const cost = {
      capture_ms: 1.5,
      step_ms: 60,
      share: 0.025,
      bytes_written: 2_000_000,
      save_every: 64
    };
    expect(costFacts(cost, trans)).toEqual([
      '2.5 % of the time',
      '1.5 ms in capture',
      '2 MB written',
      '1 step in 64 saved'
    ]);
  });

  it('leaves out what is not known', () => {
    const cost = {
      capture_ms: 1.5,
      step_ms: null,
      share: null,
      bytes_written: null,
      save_every: null
    };
    expect(costFacts(cost, trans)).toEqual(['1.5 ms in capture']);
    expect(costFacts(null, trans)).toEqual([]);
    expect(costFacts({ ...cost, capture_ms: null }, trans)).toEqual([]);
  });
});
