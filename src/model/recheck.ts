/**
 * A check of a recorded run with other thresholds: asked for, waited for, cancelled.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../api/client';
import { describeError, httpStatus } from '../api/client';
import type { IRecheck, IRecheckResult, IThresholds } from '../api/wire';

/** Where it stands: nothing asked for yet, or as the server says. */
export type RecheckState = 'idle' | IRecheck['state'];

/** One check at a time of one rule of one run. */
export class RecheckModel implements IDisposable {
  constructor(options: RecheckModel.IOptions) {
    this._client = options.client;
    this._run = options.run;
    this._poll = new Poll({
      auto: false,
      factory: () => this._look(),
      frequency: {
        interval: options.pollMs ?? 400,
        backoff: true,
        max: 5000
      },
      name: 'tdbg-lab:recheck',
      standby: 'never'
    });
  }

  /** Emits after anything changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  get state(): RecheckState {
    return this._state;
  }

  /** Whether the server is at it. */
  get isBusy(): boolean {
    return this._state === 'queued' || this._state === 'running';
  }

  /** 0 to 1. */
  get progress(): number {
    return this._progress;
  }

  /** What it does, or why it failed. */
  get message(): string {
    return this._message;
  }

  /** What it found, once it is done. */
  get result(): IRecheckResult | null {
    return this._result;
  }

  /** The thresholds it was asked with. */
  get thresholds(): IThresholds {
    return this._thresholds;
  }

  /** Check with these thresholds; what does not fit is told by `message`. */
  async start(rule: string, thresholds: IThresholds): Promise<void> {
    await this.cancel();
    this._thresholds = thresholds;
    this._result = null;
    this._set('queued', 0, '');
    try {
      this._take(await this._client.recheck(this._run, rule, thresholds));
    } catch (error) {
      this._set('failed', 0, describeError(error));
      return;
    }
    if (this.isBusy && !this.isDisposed) {
      await this._poll.start();
    }
  }

  /** Give up the check under way, if there is one. */
  async cancel(): Promise<void> {
    const { _job: job } = this;
    if (!this.isBusy || !job) {
      return;
    }
    await this._poll.stop();
    this._set('cancelled', this._progress, '');
    try {
      await this._client.cancel(job);
    } catch {
      // It has ended meanwhile, which is what was asked for.
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    void this.cancel();
    this._poll.dispose();
    Signal.clearData(this);
  }

  private async _look(): Promise<void> {
    try {
      const answer = await this._client.recheckState(this._job);
      if (!this.isDisposed && this.isBusy) {
        this._take(answer);
      }
    } catch (error) {
      if (httpStatus(error) !== 404) {
        throw error; // The server may be back soon.
      }
      this._set('failed', this._progress, describeError(error));
    }
    if (!this.isBusy) {
      void this._poll.stop();
    }
  }

  private _take(answer: IRecheck): void {
    this._job = answer.job;
    this._result = answer.result;
    this._set(answer.state, answer.progress, answer.message);
  }

  private _set(state: RecheckState, progress: number, message: string): void {
    this._state = state;
    this._progress = progress;
    this._message = message;
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _client: ITdbgClient;
  private _job = '';
  private _message = '';
  private _poll: Poll;
  private _progress = 0;
  private _result: IRecheckResult | null = null;
  private _run: string;
  private _state: RecheckState = 'idle';
  private _thresholds: IThresholds = {};
}

/** Statics of the check. */
export namespace RecheckModel {
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
