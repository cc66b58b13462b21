/**
 * A check of a recorded run with other thresholds: asked for, waited for, cancelled.
 */
import type { ITdbgClient } from '../api/client';
import type { IRecheck, IRecheckResult, IThresholds } from '../api/wire';
import { AskedModel } from './asked';

/** One check at a time of one rule of one run. */
export class RecheckModel extends AskedModel<IRecheckResult> {
  constructor(options: RecheckModel.IOptions) {
    super({ ...options, name: 'tdbg-lab:recheck' });
    this._run = options.run;
  }

  /** The thresholds it was asked with. */
  get thresholds(): IThresholds {
    return this._thresholds;
  }

  /** Check with these thresholds; what does not fit is told by `message`. */
  async start(rule: string, thresholds: IThresholds): Promise<void> {
    await this.cancel();
    this._thresholds = thresholds;
    await this.begin(() => this.client.recheck(this._run, rule, thresholds));
  }

  protected ask(job: string): Promise<IRecheck> {
    return this.client.recheckState(job);
  }

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
