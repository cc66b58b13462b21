/**
 * A profile of the next steps of a run: asked for, waited for.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../api/client';
import { describeError, httpStatus } from '../api/client';
import type { IProfileRequest } from '../api/wire';

/** Where it stands: nothing asked for yet, not to be had, or as the server says. */
export type ProfilingState = 'idle' | 'failed' | IProfileRequest['state'];

/** Looks for an answer after the training has ended. */
const LOOKS_AFTER_END = 10;

/** One profile at a time of one run. */
export class ProfilingModel implements IDisposable {
  constructor(options: ProfilingModel.IOptions) {
    this._client = options.client;
    this._run = options.run;
    this._poll = new Poll({
      auto: false,
      factory: () => this._look(),
      frequency: {
        interval: options.pollMs ?? 1000,
        backoff: true,
        max: 10000
      },
      name: 'tdbg-lab:profiling',
      standby: 'when-hidden'
    });
  }

  /** Emits after anything changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  get state(): ProfilingState {
    return this._state;
  }

  /** Whether the training is at it. */
  get isBusy(): boolean {
    return ['requested', 'recording', 'saving'].includes(this._state);
  }

  /** What the training process answered, or why there is no profile. */
  get message(): string {
    return this._message;
  }

  /** Profile the next steps; a failure is told by `message`. */
  async start(steps: number): Promise<void> {
    if (this.isBusy || this.isDisposed) {
      return;
    }
    this._looksLeft = Infinity;
    this._set('requested', '');
    try {
      this._request = await this._client.profile(this._run, steps);
    } catch (error) {
      this._set('failed', describeError(error));
      return;
    }
    if (!this.isDisposed) {
      await this._poll.start();
    }
  }

  /** The training has ended: an answer that does not come soon will not come. */
  end(): void {
    this._looksLeft = Math.min(this._looksLeft, LOOKS_AFTER_END);
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._poll.dispose();
    Signal.clearData(this);
  }

  private async _look(): Promise<void> {
    try {
      const { requests } = await this._client.profiles(this._run);
      const own = requests.find(({ id }) => id === this._request);
      if (this.isDisposed) {
        return;
      }
      if (own) {
        this._set(own.state, own.answer);
      }
      this._looksLeft -= 1;
      if (this.isBusy && this._looksLeft < 0) {
        this._set('failed', '');
      }
    } catch (error) {
      if (httpStatus(error) !== 404) {
        throw error; // The server may be back soon.
      }
      this._set('failed', describeError(error));
    }
    if (!this.isBusy) {
      void this._poll.stop();
    }
  }

  private _set(state: ProfilingState, message: string): void {
    if (state !== this._state || message !== this._message) {
      this._state = state;
      this._message = message;
      this._changed.emit();
    }
  }

  private _changed = new Signal<this, void>(this);
  private _client: ITdbgClient;
  private _looksLeft = Infinity;
  private _message = '';
  private _poll: Poll;
  private _request = '';
  private _run: string;
  private _state: ProfilingState = 'idle';
}

/** Statics of the profile. */
export namespace ProfilingModel {
  /** What it needs. */
  export interface IOptions {
    /** Where to ask. */
    readonly client: ITdbgClient;
    /** Id of the run. */
    readonly run: string;
    /** Time between two looks, ms. */
    readonly pollMs?: number;
  }
}
