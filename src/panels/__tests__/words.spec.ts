import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import { lastStepWords, stepWords } from '../words';

const trans = nullTranslator.load('tdbg_lab');

describe('stepWords()', () => {
  it('names the step, or says that there is none', () => {
    expect(stepWords(0, true, trans)).toBe('Step 0');
    expect(stepWords(-1, true, trans)).toBe('No step yet');
    expect(stepWords(-1, false, trans)).toBe('No steps');
  });
});

describe('lastStepWords()', () => {
  it('expects steps only of runs that go on', () => {
    expect(lastStepWords({ last_step: 7, status: 'running' }, trans)).toBe(
      'step 7'
    );
    expect(lastStepWords({ last_step: -1, status: 'running' }, trans)).toBe(
      'no step yet'
    );
    expect(lastStepWords({ last_step: -1, status: 'failed' }, trans)).toBe(
      'no steps'
    );
  });
});
