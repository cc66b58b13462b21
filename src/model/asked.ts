/**
 * Work that the server does on request: followed until its result is there, and cancelled.
 */
import type { ITdbgClient } from '../api/client';
import { describeError } from '../api/client';
import type { IAsked, JobState } from '../api/wire';
import { JobModel } from './job';

/** One such work at a time; `R` is what it makes. Its message is what it does, or why it failed. */
export abstract class AskedModel<R> extends JobModel<JobState> {
  constructor(options: AskedModel.IOptions) {
    super({
      name: options.name,
      interval: options.pollMs ?? 400,
      max: 5000,
      standby: 'never'
    });
    this.client = options.client;
  }

  /** Whether the server is at it. */
  get isBusy(): boolean {
    return this.state === 'queued' || this.state === 'running';
  }

  /** 0 to 1. */
  get progress(): number {
    return this._progress;
  }

  /** What it made, once it is done. */
  get result(): R | null {
    return this._result;
  }

  /** Give up the work under way, if there is one. */
  async cancel(): Promise<void> {
    if (this.isBusy) {
      this.set('cancelled', '');
      this._cancelling = this._cancel(this._asking);
    }
    await this._cancelling;
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    super.dispose();
    void this.cancel();
  }

  /** Where to ask. */
  protected readonly client: ITdbgClient;

  /** Id of the work asked for last. */
  protected get job(): string {
    return this._job;
  }

  /** Ask where the work stands. */
  protected abstract ask(job: string): Promise<IAsked<R>>;

  /** Ask for the work, and follow it; what does not fit is told by `message`. */
  protected async begin(request: () => Promise<IAsked<R>>): Promise<void> {
    this._job = '';
    this._result = null;
    this._progress = 0;
    this.set('queued', '', true);
    const turn = ++this._turn;
    const wanted = (): boolean => this.isBusy && turn === this._turn;
    this._asking = this._ask(request, wanted);
    await this._asking;
    if (wanted()) {
      await this.follow();
    }
  }

  protected async look(): Promise<void> {
    const answer = await this.ask(this._job);
    if (!this.isDisposed && this.isBusy) {
      this._take(answer);
    }
  }

  /** Ask for the work, and take the answer while it is still wanted; answers its id, if it has one. */
  private async _ask(
    request: () => Promise<IAsked<R>>,
    wanted: () => boolean
  ): Promise<string> {
    await this._cancelling;
    if (!wanted()) {
      return '';
    }
    try {
      const answer = await request();
      if (wanted()) {
        this._take(answer);
      }
      return answer.job;
    } catch (error) {
      if (wanted()) {
        this.set('failed', describeError(error));
      }
      return '';
    }
  }

  /** Give up the work that is being asked for: it has no id before the server has answered. */
  private async _cancel(asking: Promise<string>): Promise<void> {
    await this.leave();
    const job = await asking;
    try {
      await (job && this.client.cancel(job));
    } catch {
      // It has ended meanwhile, which is what was asked for.
    }
  }

  private _take(answer: IAsked<R>): void {
    this._job = answer.job;
    this._result = answer.result;
    this._progress = answer.progress;
    this.set(answer.state, answer.message, true);
  }

  private _asking = Promise.resolve('');
  private _cancelling = Promise.resolve();
  private _job = '';
  private _progress = 0;
  private _result: R | null = null;
  private _turn = 0;
}

/** Statics of such work. */
export namespace AskedModel {
  /** What it needs. */
  export interface IOptions {
    /** Name of the poll. */
    readonly name: string;
    /** Where to ask. */
    readonly client: ITdbgClient;
    /** Time between two looks, ms. */
    readonly pollMs?: number;
  }
}
