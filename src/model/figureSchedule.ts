/**
 * When a picture is asked for: while somebody looks, one request at a time, no more often than allowed.
 */
import type { IDisposable } from '@lumino/disposable';

import type { DrawPace } from './pace';

/**
 * Turns "out of date" into requests.
 *
 * #### Notes
 * At most one request is under way; what happens meanwhile leads to one more, never to a queue.
 * While inactive it asks for nothing, and catches up when it becomes active again.
 */
export class FigureSchedule implements IDisposable {
  constructor(options: FigureSchedule.IOptions) {
    this._options = options;
  }

  /** Whether a request is under way. */
  get isAsking(): boolean {
    return this._isAsking;
  }

  /** Whether somebody looks. */
  get isActive(): boolean {
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (!this._isDisposed) {
      this._isActive = value;
      this._schedule();
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The picture is out of date. */
  invalidate(): void {
    if (!this._isDisposed) {
      this._isDirty = true;
      this._schedule();
    }
  }

  /** The next request need not wait for the last one's sake. */
  hurry(): void {
    this._lastStart = 0;
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  /** Ask now, or as soon as the present request, the rate and the other pictures allow. */
  private _schedule(): void {
    const isUnderWay =
      this._isAsking || this._isWaiting || this._timer !== undefined;
    if (!this._isDue || isUnderWay || !this._options.isReady()) {
      return;
    }
    const wait = this._lastStart + this._options.gap() - Date.now();
    this._timer = setTimeout(
      () => {
        this._timer = undefined;
        this._isWaiting = true;
        this._options.pace.turn(() => this._turn());
      },
      Math.max(0, wait)
    );
  }

  /** It is its turn. */
  private async _turn(): Promise<void> {
    this._isWaiting = false;
    if (!this._isDue) {
      return;
    }
    this._isDirty = false;
    this._isAsking = true;
    this._lastStart = Date.now();
    await this._options.ask();
    this._isAsking = false;
    if (!this._isDisposed) {
      this._options.onAnswered();
      this._schedule();
    }
  }

  private get _isDue(): boolean {
    return this._isActive && this._isDirty && !this._isDisposed;
  }

  private _isActive = false;
  private _isAsking = false;
  private _isDirty = true;
  private _isDisposed = false;
  private _isWaiting = false;
  private _lastStart = 0;
  private _options: FigureSchedule.IOptions;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** Statics of the schedule. */
export namespace FigureSchedule {
  /** What it needs. */
  export interface IOptions {
    /** Shared by all pictures of a page. */
    readonly pace: DrawPace;
    /** Shortest time from one request to the next, ms. */
    readonly gap: () => number;
    /** Whether it makes sense to ask at all; when it does again, `invalidate` is called. */
    readonly isReady: () => boolean;
    /** Make one request; never rejects. */
    readonly ask: () => Promise<void>;
    /** Called after each, unless disposed meanwhile. */
    readonly onAnswered: () => void;
  }
}
