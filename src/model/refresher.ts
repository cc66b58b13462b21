/**
 * Asking again and again for what changes, not too often, and never believing an answer that is out of date.
 */
import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';

/**
 * Asks after news, at most once in a while.
 *
 * #### Notes
 * News that comes while an answer is on its way may not be in it: so it asks once more. A `Throttler` alone
 * drops that call.
 */
export class Refresher implements IDisposable {
  /**
   * @param ask - asks, and takes the answer in
   * @param limit - time from the first news to the question, ms
   */
  constructor(ask: () => Promise<void>, limit: number) {
    const once = async (): Promise<void> => {
      this._isAsking = true;
      this._isOutdated = false;
      try {
        await ask();
      } finally {
        this._isAsking = false;
      }
    };
    this._throttler = new Throttler(once, { limit, edge: 'trailing' });
  }

  get isDisposed(): boolean {
    return this._throttler.isDisposed;
  }

  /** There is news; the answer is kept when it was taken in, and broken when asking failed. */
  async invoke(): Promise<void> {
    if (this._isAsking) {
      this._isOutdated = true;
      return;
    }
    await this._throttler.invoke();
    if (this._isOutdated && !this.isDisposed) {
      this._isOutdated = false;
      await this.invoke();
    }
  }

  dispose(): void {
    this._throttler.dispose();
  }

  private _isAsking = false;
  private _isOutdated = false;
  private _throttler: Throttler<void>;
}
