import { describe, expect, it } from 'vitest';

import { fitWords } from '../words';

const TEXT =
  '<b>No raw values are saved in this run.</b><br>Record a layer and its labels,<br>handle.record("latent", z, labels=y).';

describe('fitWords()', () => {
  it('leaves a wide panel lines that are easy to read', () => {
    expect(fitWords(TEXT, 800).split('<br>')).toEqual([
      '<b>No raw values are saved in this run.</b>',
      'Record a layer and its labels,',
      'handle.record("latent", z, labels=y).'
    ]);
  });

  it('breaks title and hint where a panel is narrow', () => {
    const lines = fitWords(TEXT, 200).split('<br>');
    expect(lines.slice(0, 2)).toEqual([
      '<b>No raw values are</b>',
      '<b>saved in this run.</b>'
    ]);
    expect(lines.join('').replace(/<\/?b>| /g, '')).toBe(
      TEXT.replace(/<\/?b>|<br>| /g, '')
    );
    expect(
      Math.max(...lines.map(line => line.replace(/<\/?b>/g, '').length))
    ).toBeLessThanOrEqual(21);
  });

  it('breaks a line of code behind its signs where it does not fit', () => {
    const text =
      '<b>No scalars here.</b><br>handle.log(accuracy=&lt;number&gt;)';
    expect(fitWords(text, 150).split('<br>').slice(2)).toEqual([
      'handle.log(',
      'accuracy=',
      '&lt;number&gt;)'
    ]);
  });

  it('keeps words whole in a panel of no width', () => {
    expect(fitWords('<b>NothingToSeeHere</b>', 0)).toBe(
      '<b>NothingToSeeHere</b>'
    );
  });
});
