import { describe, expect, it } from 'vitest';

import { summary } from '../../api/__tests__/fake';
import { runChoices } from '../view/param';

describe('runChoices()', () => {
  const run = (id: string, name: string) =>
    summary({ id, name, path: `runs/${id}` });

  it('tells runs of one name apart by their paths', () => {
    const runs = [run('a', 'same'), run('b', 'same'), run('c', 'own')];
    expect(runChoices(runs, '').map(({ label }) => label)).toEqual([
      'same (runs/a)',
      'same (runs/b)',
      'own'
    ]);
  });

  it('offers a bounded number, the chosen one always', () => {
    const runs = Array.from({ length: 1000 }, (_, i) => run(`${i}`, `${i}`));
    const choices = runChoices(runs, '999');
    expect(choices.length).toBeLessThan(500);
    expect(choices[choices.length - 1].value).toBe('999');
    expect(runChoices(runs, 'gone').pop()?.value).toBe('gone');
  });
});
