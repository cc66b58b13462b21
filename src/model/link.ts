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

/** The link in the query of an address, if it has one; parameters that are not JSON are left out. */
export function readLink(search: string): ILink | null {
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

function readParams(text: string | null): ViewParams {
  try {
    const params: unknown = JSON.parse(text ?? '{}');
    return params !== null &&
      typeof params === 'object' &&
      !Array.isArray(params)
      ? (params as ViewParams)
      : {};
  } catch {
    return {};
  }
}
