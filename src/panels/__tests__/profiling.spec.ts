import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import type { ProfilingState } from '../../model/profiling';
import { profileWord } from '../run/profiling';

const trans = nullTranslator.load('tdbg_lab');
const word = (state: ProfilingState, message = ''): string =>
  profileWord({ state, message }, trans);

describe('profileWord', () => {
  it('says something else of each state', () => {
    const states = ['requested', 'recording', 'saving', 'ready'] as const;
    expect(new Set(states.map(state => word(state))).size).toBe(4);
    expect(word('idle')).toBe('');
  });

  it('tells the reason when there is no profile', () => {
    expect(word('refused', 'Step 3 is over.')).toBe('Profile: Step 3 is over.');
    expect(word('failed')).toContain('ended before');
  });
});
