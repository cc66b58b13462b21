/**
 * Pictures in a page of JupyterLab, where the page at hand has no room for tabs.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { ILink } from '../model/link';
import { linkUrl } from '../model/link';

/** Open what a link opens in a new tab of the browser. */
export function openInLab(
  app: JupyterFrontEnd,
  link: ILink,
  trans: TranslationBundle
): void {
  const { baseUrl } = app.serviceManager.serverSettings;
  if (!window.open(linkUrl(baseUrl, link), '_blank')) {
    Notification.warning(
      trans.__(
        'Pictures open in JupyterLab, in a new tab, and the browser opened none: allow pop-ups of this page.'
      ),
      { autoClose: 8000 }
    );
  }
}
