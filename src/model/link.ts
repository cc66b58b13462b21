/**
 * Links to pictures: addresses of JupyterLab that open them.
 */
import { URLExt } from '@jupyterlab/coreutils';

import type { ViewParams } from '../api/wire';

/** What a link opens. */
export interface ILink {
  /** Id of the run. */
  readonly run: string;
  /** `dashboard`, `rules`, or the name of a view. */
  readonly open: string;
  /** Parameters of the view. */
  readonly params: ViewParams;
}

/** Whether an address, or the part of one behind the path, has a link in it. */
export const LINK_PATTERN = /[?&]tdbg-run=/;

const [RUN, OPEN, PARAMS] = ['tdbg-run', 'tdbg-open', 'tdbg-params'];

/** The address of a link, on the server whose base URL is `base`. */
export function linkUrl(base: string, link: ILink): string {
  const query: { [key: string]: string } = {
    [RUN]: link.run,
    [OPEN]: link.open
  };
  if (Object.keys(link.params).length > 0) {
    query[PARAMS] = JSON.stringify(link.params);
  }
  return URLExt.join(base, 'lab') + URLExt.objectToQueryString(query);
}

/** A link as it was found. */
export interface IFoundLink extends Omit<ILink, 'params'> {
  /** As they stand in it; an object, unless somebody mistyped them. */
  readonly params: ViewParams | string;
}

/** The link in the query of an address, if it has one. */
export function readLink(search: string): IFoundLink | null {
  const query = new URLSearchParams(search);
  const run = query.get(RUN);
  if (!run) {
    return null;
  }
  return {
    run,
    open: query.get(OPEN) || 'dashboard',
    params: readParams(query.get(PARAMS))
  };
}

/** An address without the link in it. */
export function withoutLink(address: string): string {
  const [path, hash] = address.split('#', 2);
  const [before, search] = path.split('?', 2);
  const query = new URLSearchParams(search);
  [RUN, OPEN, PARAMS].forEach(key => query.delete(key));
  const rest = query.toString();
  return before + (rest && `?${rest}`) + (hash ? `#${hash}` : '');
}

/** The parameters, or the text that does not say any. */
function readParams(text: string | null): ViewParams | string {
  if (!text) {
    return {};
  }
  try {
    const params: unknown = JSON.parse(text);
    return params !== null &&
      typeof params === 'object' &&
      !Array.isArray(params)
      ? (params as ViewParams)
      : text;
  } catch {
    return text;
  }
}
