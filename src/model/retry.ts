/**
 * Asking again by itself after a failure that may pass.
 */
import type { IDisposable } from '@lumino/disposable';

import { mayPass } from '../api/client';

/** Time to the first attempt after a failure, ms; each further one takes twice as long to come. */
const FIRST_MS = 3000;

/** Longest time, ms. */
const LONGEST_MS = 60_000;

/** Does something again, more and more seldom, until it succeeds. */
export class Retry implements IDisposable {
  /** @param again - asks again; answers by `failed` or `succeeded` */
  constructor(again: () => void) {
    this._again = again;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** It failed: it is done again later, unless it would fail in the same way. */
  failed(error: unknown): void {
    clearTimeout(this._timer);
    if (!this._isDisposed && mayPass(error)) {
      this._timer = setTimeout(this._again, this._wait);
      this._wait = Math.min(2 * this._wait, LONGEST_MS);
    }
  }

  /** It succeeded. */
  succeeded(): void {
    clearTimeout(this._timer);
    this._wait = FIRST_MS;
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  private _again: () => void;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _wait = FIRST_MS;
}

/**
 * Ask until the server is reached; answers what it said, and throws what it refused with.
 *
 * @param most - so often at most; then it throws why it was not reached
 */
export async function untilReached<T>(
  ask: () => Promise<T>,
  most = Infinity
): Promise<T> {
  let wait = FIRST_MS;
  for (let asked = 1; ; asked++) {
    try {
      return await ask();
    } catch (error) {
      if (!mayPass(error) || asked >= most) {
        throw error;
      }
    }
    await new Promise(resolve => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, LONGEST_MS);
  }
}
