/**
 * The job of the server that refines a picture.
 */
import type { IDisposable } from '@lumino/disposable';

import type { ITdbgClient } from '../api/client';
import { describeError } from '../api/client';
import type { IPendingJob, StreamMessage } from '../api/wire';

/** Time after which a job that says nothing counts as ended, ms. */
const SILENCE_MS = 1500;

/** Follows one job after the other until each has ended. */
export class FigureJob implements IDisposable {
  constructor(options: FigureJob.IOptions) {
    this._options = options;
  }

  /** The job under way; null when there is none. */
  get pending(): IPendingJob | null {
    return this._pending;
  }
  set pending(value: IPendingJob | null) {
    clearTimeout(this._timer);
    this._pending = value;
    if (value && !this._isDisposed) {
      this._timer = setTimeout(this._options.onEnded, SILENCE_MS);
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Take in a message about a job. */
  handleMessage(message: StreamMessage): void {
    if (
      this._isDisposed ||
      message.type !== 'job' ||
      message.job !== this._pending?.job
    ) {
      return;
    }
    const goesOn = message.state === 'running' || message.state === 'queued';
    this.pending = goesOn
      ? {
          job: message.job,
          progress: message.progress,
          message: message.message
        }
      : null;
    this._options.onChanged();
    if (!goesOn && message.state !== 'cancelled') {
      this._options.onEnded();
    }
  }

  /** Give it up. */
  async cancel(): Promise<void> {
    const { pending } = this;
    if (!pending) {
      return;
    }
    this.pending = null;
    this._options.onChanged();
    try {
      await this._options.client.cancel(pending.job);
    } catch (error) {
      // The job ended by itself: nothing is left to cancel.
      console.warn('Job could not be cancelled', describeError(error));
    }
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  private _isDisposed = false;
  private _options: FigureJob.IOptions;
  private _pending: IPendingJob | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** Statics of the job. */
export namespace FigureJob {
  /** What it needs. */
  export interface IOptions {
    /** Where to cancel. */
    readonly client: ITdbgClient;
    /** Called when it moved on, ended or was given up. */
    readonly onChanged: () => void;
    /** Called when there is a better picture to be had, or nothing was heard for a while. */
    readonly onEnded: () => void;
  }
}
