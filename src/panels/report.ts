/**
 * A report in a tab of its own.
 */
import { IFrame } from '@jupyterlab/ui-components';

/**
 * The page, locked up: its scripts run, but see nothing of the application.
 */
export class ReportPage extends IFrame {
  constructor(page: Blob, title: string) {
    // Without 'allow-same-origin' the page has an origin of its own.
    super({ sandbox: ['allow-scripts', 'allow-downloads'] });
    this._url = URL.createObjectURL(page);
    this.url = this._url;
    this.node.querySelector('iframe')?.setAttribute('title', title);
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    URL.revokeObjectURL(this._url);
    super.dispose();
  }

  private _url: string;
}

/** Hand a page to the browser, to be saved as `file`. */
export function savePage(page: Blob, file: string): void {
  const url = URL.createObjectURL(page);
  const link = document.createElement('a');
  link.href = url;
  link.download = file;
  link.click();
  // The browser has taken hold of it when the click is over, but not before.
  setTimeout(() => URL.revokeObjectURL(url), 0);
}
