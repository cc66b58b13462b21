/**
 * What another process does for us: asked for once, then looked at until it is over.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { describeError, httpStatus } from '../api/client';

/** One job at a time; `S` are the words for where it stands. */
export abstract class JobModel<S extends string> implements IDisposable {
  constructor(options: JobModel.IOptions) {
    this._poll = new Poll({
      auto: false,
      factory: () => this._look(),
      frequency: {
        interval: options.interval,
        backoff: true,
        max: options.max
      },
      name: options.name,
      standby: options.standby
    });
  }

  /** Emits after anything changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  get state(): S | 'idle' | 'failed' {
    return this._state;
  }

  /** What is told of it, or why it failed. */
  get message(): string {
    return this._message;
  }

  /** Whether it is not over yet. */
  abstract get isBusy(): boolean;

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._poll.dispose();
    Signal.clearData(this);
  }

  /** Ask where it stands, and take the answer. */
  protected abstract look(): Promise<void>;

  /** Look from now on, until it is over. */
  protected async follow(): Promise<void> {
    if (this.isBusy && !this.isDisposed) {
      await this._poll.start();
    }
  }

  /** Look no longer. */
  protected async leave(): Promise<void> {
    await this._poll.stop();
  }

  /**
   * Say where it stands.
   *
   * @param more - whether something else changed, too
   */
  protected set(
    state: S | 'idle' | 'failed',
    message: string,
    more = false
  ): void {
    if (more || state !== this._state || message !== this._message) {
      this._state = state;
      this._message = message;
      this._changed.emit();
    }
  }

  private async _look(): Promise<void> {
    try {
      await this.look();
    } catch (error) {
      if (httpStatus(error) !== 404) {
        throw error; // The server may be back soon.
      }
      this.set('failed', describeError(error));
    }
    if (!this.isBusy) {
      void this._poll.stop();
    }
  }

  private _changed = new Signal<this, void>(this);
  private _message = '';
  private _poll: Poll;
  private _state: S | 'idle' | 'failed' = 'idle';
}

/** Statics of jobs. */
export namespace JobModel {
  /** How it is looked at. */
  export interface IOptions {
    /** Name of the poll. */
    readonly name: string;
    /** Time between two looks, ms. */
    readonly interval: number;
    /** The same at most, when looking fails, ms. */
    readonly max: number;
    /** When not to look. */
    readonly standby: Poll.Standby;
  }
}
