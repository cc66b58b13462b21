/**
 * A profile of the next steps of a run: asked for, waited for.
 */
import type { ITdbgClient } from '../api/client';
import { describeError } from '../api/client';
import type { IProfileRequest } from '../api/wire';
import { JobModel } from './job';

/** Where it stands: nothing asked for yet, not to be had, or as the server says. */
export type ProfilingState = ProfilingModel['state'];

/** Looks for an answer after the training has ended. */
const LOOKS_AFTER_END = 10;

/** One profile at a time of one run. Its message is what the training process answered. */
export class ProfilingModel extends JobModel<IProfileRequest['state']> {
  constructor(options: ProfilingModel.IOptions) {
    super({
      name: 'tdbg-lab:profiling',
      interval: options.pollMs ?? 1000,
      max: 10000,
      standby: 'when-hidden'
    });
    this._client = options.client;
    this._run = options.run;
  }

  /** Whether the training is at it. */
  get isBusy(): boolean {
    return ['requested', 'recording', 'saving'].includes(this.state);
  }

  /** Profile the next steps; a failure is told by `message`. */
  async start(steps: number): Promise<void> {
    if (this.isBusy || this.isDisposed) {
      return;
    }
    this._looksLeft = Infinity;
    this.set('requested', '');
    try {
      this._request = await this._client.profile(this._run, steps);
    } catch (error) {
      this.set('failed', describeError(error));
      return;
    }
    await this.follow();
  }

  /** The training has ended: an answer that does not come soon will not come. */
  end(): void {
    this._looksLeft = Math.min(this._looksLeft, LOOKS_AFTER_END);
  }

  protected async look(): Promise<void> {
    const { requests } = await this._client.profiles(this._run);
    const own = requests.find(({ id }) => id === this._request);
    if (this.isDisposed) {
      return;
    }
    if (own) {
      this.set(own.state, own.answer);
    }
    this._looksLeft -= 1;
    if (this.isBusy && this._looksLeft < 0) {
      this.set('failed', '');
    }
  }

  private _client: ITdbgClient;
  private _looksLeft = Infinity;
  private _request = '';
  private _run: string;
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
