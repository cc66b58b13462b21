/**
 * A check of a recorded run with other thresholds: asked for, waited for, cancelled.
 */
import type { ITdbgClient } from '../api/client';
import { describeError } from '../api/client';
import type { IRecheck, IRecheckResult, IThresholds } from '../api/wire';
import { JobModel } from './job';

/** Where it stands: nothing asked for yet, or as the server says. */
export type RecheckState = RecheckModel['state'];

/** One check at a time of one rule of one run. Its message is what it does, or why it failed. */
export class RecheckModel extends JobModel<IRecheck['state']> {
  constructor(options: RecheckModel.IOptions) {
    super({
      name: 'tdbg-lab:recheck',
      interval: options.pollMs ?? 400,
      max: 5000,
      standby: 'never'
    });
    this._client = options.client;
    this._run = options.run;
  }

  /** Whether the server is at it. */
  get isBusy(): boolean {
    return this.state === 'queued' || this.state === 'running';
  }

  /** 0 to 1. */
  get progress(): number {
    return this._progress;
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
    this._progress = 0;
    this.set('queued', '', true);
    try {
      this._take(await this._client.recheck(this._run, rule, thresholds));
    } catch (error) {
      this._progress = 0;
      this.set('failed', describeError(error));
      return;
    }
    await this.follow();
  }

  /** Give up the check under way, if there is one. */
  async cancel(): Promise<void> {
    const { _job: job } = this;
    if (!this.isBusy || !job) {
      return;
    }
    await this.leave();
    this.set('cancelled', '');
    try {
      await this._client.cancel(job);
    } catch {
      // It has ended meanwhile, which is what was asked for.
    }
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    void this.cancel();
    super.dispose();
  }

  protected async look(): Promise<void> {
    const answer = await this._client.recheckState(this._job);
    if (!this.isDisposed && this.isBusy) {
      this._take(answer);
    }
  }

  private _take(answer: IRecheck): void {
    this._job = answer.job;
    this._result = answer.result;
    this._progress = answer.progress;
    this.set(answer.state, answer.message, true);
  }

  private _client: ITdbgClient;
  private _job = '';
  private _progress = 0;
  private _result: IRecheckResult | null = null;
  private _run: string;
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
