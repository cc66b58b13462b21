import { expect, it } from 'vitest';

import { LINK_PATTERN, linkUrl, readLink, withoutLink } from '../link';

const LINK = {
  run: 'cf952efa6d6c3faa',
  open: 'histogram',
  params: { tensor: 'activation/a&b=ü', step: 3 }
};

it('leads to what it was made of, below the base URL', () => {
  const url = new URL(linkUrl('http://host:8888/user/ann%40x/', LINK));
  expect(url.pathname).toBe('/user/ann%40x/lab');
  expect(url.search).toMatch(LINK_PATTERN);
  expect(readLink(url.search)).toEqual(LINK);
});

it('opens the dashboard unless it says what', () => {
  expect(readLink('?tdbg-run=1')).toEqual({
    run: '1',
    open: 'dashboard',
    params: {}
  });
  expect(readLink('?reset&tdbg-open=rules')).toBeNull();
});

it.each(['{', 'null', '[1]', '"x"', 'tensor=conv1'])(
  'tells parameters that are none: %s',
  text => {
    const search = `?tdbg-run=1&tdbg-params=${encodeURIComponent(text)}`;
    expect(readLink(search)?.params).toBe(text);
  }
);

it('has no parameters where none are written', () => {
  expect(readLink('?tdbg-run=1&tdbg-params=')?.params).toEqual({});
});

it('is taken out of an address, which keeps all else', () => {
  const query = linkUrl('/', LINK).split('?')[1];
  expect(withoutLink(`/lab?${query}`)).toBe('/lab');
  expect(withoutLink(`/lab/tree/a.ipynb?reset=1&${query}#part`)).toBe(
    '/lab/tree/a.ipynb?reset=1#part'
  );
});
