/**
 * A report on a run: one page, written by the server on request.
 */
import type { ITdbgClient } from '../api/client';
import type { IReport, IReportResult } from '../api/wire';
import { AskedModel } from './asked';

/** One report at a time of one run. */
export class ReportModel extends AskedModel<IReportResult> {
  constructor(options: ReportModel.IOptions) {
    super({ ...options, name: 'tdbg-lab:report' });
    this._run = options.run;
  }

  /** Write it, unless it is being written; a failure is told by `message`. */
  async start(): Promise<void> {
    if (!this.isBusy && !this.isDisposed) {
      await this.begin(() => this.client.report(this._run));
    }
  }

  /** The page, once it is done. */
  page(): Promise<Blob> {
    return this.client.reportPage(this.job);
  }

  /** The same as a notebook. */
  notebook(): Promise<Blob> {
    return this.client.reportPage(this.job, 'notebook');
  }

  protected ask(job: string): Promise<IReport> {
    return this.client.reportState(job);
  }

  private _run: string;
}

/** Statics of the report. */
export namespace ReportModel {
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
