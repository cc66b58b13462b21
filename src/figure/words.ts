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

/** Lines of at most so many letters, but for longer words. */
function lines(text: string, most: number): ReadonlyArray<string> {
  const found: string[] = [];
  for (const word of text.split(' ').filter(Boolean)) {
    const last = found.pop();
    if (last === undefined) {
      found.push(word);
    } else if (last.length + word.length + 1 <= most) {
      found.push(`${last} ${word}`);
    } else {
      found.push(last, word);
    }
  }
  return found;
}
