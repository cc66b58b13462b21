import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import type { RunModel } from '../../model/run';
import { isolated, missingRun, panelTitle, runName } from '../name';

const trans = nullTranslator.load('tdbg_lab');

function run(state: string, name: string): RunModel {
  const summary = name ? { name } : null;
  return { id: '3f2a', name: name || '3f2a', state, summary } as RunModel;
}

describe('runName()', () => {
  it('is the name, also of a run that is gone', () => {
    expect(runName(run('ready', 'digits'), trans)).toBe('digits');
    expect(runName(run('missing', 'digits'), trans)).toBe('digits');
  });

  it('does not show the id of a run that is gone and was never known', () => {
    expect(runName(run('missing', ''), trans)).toBe('Run not found');
    expect(runName(run('loading', ''), trans)).toBe('3f2a');
  });
});

describe('isolated()', () => {
  it('keeps a name that is written from right to left in its place', () => {
    expect(isolated('digits')).toBe('digits');
    expect(isolated('تجربة 7')).toBe('\u2068تجربة 7\u2069');
    expect(panelTitle('Rules', run('ready', 'שלום 2'), true, trans)).toBe(
      '\u2068שלום 2\u2069 · Rules'
    );
  });
});

describe('missingRun()', () => {
  it('calls deleted only what was there', () => {
    expect(missingRun(run('missing', 'digits'), trans)).toBe(
      'This run was deleted'
    );
    expect(missingRun(run('missing', ''), trans)).toBe('Run not found');
  });
});
