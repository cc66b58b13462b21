/**
 * Words that stand in place of a picture, broken into lines that fit the panel.
 */

/** Width of a letter, px. */
const LETTER = 7;

/** What is kept free on both sides together, px. */
const MARGIN = 48;

/** Letters of a line: longer ones are hard to read, shorter ones would hold no word. */
const LONGEST = 46;
const SHORTEST = 12;

/**
 * The same words in lines that fit.
 *
 * @param text - a bold title and plain lines below it, as Plotly reads them
 * @param width - of the panel, px
 */
export function fitWords(text: string, width: number): string {
  const most = Math.min(
    LONGEST,
    Math.max(SHORTEST, Math.floor((width - MARGIN) / LETTER))
  );
  const [first, ...rest] = text.split('<br>');
  const title = /^<b>(.*)<\/b>$/.exec(first)?.[1];
  return [
    ...(title === undefined
      ? lines(first, most)
      : lines(title, most).map(line => `<b>${line}</b>`)),
    ...lines(rest.join(' '), most)
  ].join('<br>');
}

/** Lines of at most so many letters, but for longer words of which no part fits. */
function lines(text: string, most: number): ReadonlyArray<string> {
  const found: string[] = [];
  for (const word of text.split(' ').filter(Boolean)) {
    parts(word, most).forEach((part, i) => {
      const last = found.pop();
      const gap = i === 0 ? ' ' : '';
      if (last === undefined) {
        found.push(part);
      } else if (last.length + gap.length + part.length <= most) {
        found.push(`${last}${gap}${part}`);
      } else {
        found.push(last, part);
      }
    });
  }
  return found;
}

/** Where a word may be broken: a line of code behind its signs, and never an entity such as `&lt;`. */
function parts(word: string, most: number): ReadonlyArray<string> {
  return word.length <= most ? [word] : word.split(/(?<=[._/(=[,])/);
}
