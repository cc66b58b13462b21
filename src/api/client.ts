/**
 * The REST side of the wire: one typed method per route, nothing kept.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type {
  IFigureAnswer,
  IProfiling,
  IRecheck,
  IReport,
  IRuleInfo,
  IRules,
  IRunDetail,
  IRunEdit,
  IRunList,
  IRunSummary,
  IServerStatus,
  ITensorList,
  IThresholds,
  IViewInfo,
  ViewParams
} from './wire';

/** What the models need from a server; tests give them a fake. */
export interface ITdbgClient {
  /** What the server is; fails with 404 where the extension is not enabled. */
  status(): Promise<IServerStatus>;
  /** All runs under the roots. */
  runs(): Promise<IRunList>;
  /** One run. */
  run(id: string): Promise<IRunDetail>;
  /** Change name, tags or notes. */
  edit(id: string, edit: IRunEdit): Promise<IRunSummary>;
  /** Remove the run directory. */
  remove(id: string): Promise<void>;
  /** The tensors of a run. */
  tensors(id: string): Promise<ITensorList>;
  /** Steps with data, at most 2000, first and last among them. */
  steps(id: string, mode?: string): Promise<ReadonlyArray<number>>;
  /** The pictures the server can draw. */
  views(): Promise<ReadonlyArray<IViewInfo>>;
  /** Draw one. */
  figure(
    id: string,
    view: string,
    params: ViewParams,
    signal?: AbortSignal
  ): Promise<IFigureAnswer>;
  /** Give up a job. */
  cancel(job: string): Promise<void>;
  /** Rule states and findings. */
  rules(id: string): Promise<IRules>;
  /** The rules the server knows. */
  ruleCatalogue(): Promise<ReadonlyArray<IRuleInfo>>;
  /** Check all that was recorded with other thresholds of a rule. */
  recheck(id: string, rule: string, thresholds: IThresholds): Promise<IRecheck>;
  /** Where such a check stands. */
  recheckState(job: string): Promise<IRecheck>;
  /** Begin to write the report on a run. */
  report(id: string): Promise<IReport>;
  /** Where it stands. */
  reportState(job: string): Promise<IReport>;
  /** The page, once it is done, or the same as a notebook. */
  reportPage(job: string, format?: 'html' | 'notebook'): Promise<Blob>;
  /** Apply the fix of a finding; answers the id of the request to the training. */
  fix(id: string, finding: string): Promise<string>;
  /** Ask the training process to profile its next steps; answers the id of the request. */
  profile(id: string, steps: number): Promise<string>;
  /** What became of such requests. */
  profiles(id: string): Promise<IProfiling>;
  /** Ask the training process to stop. */
  stop(id: string, reason: string): Promise<string>;
}

/** What goes with a request. */
interface IRequestOptions {
  readonly body?: unknown;
  readonly query?: { [name: string]: string };
  readonly signal?: AbortSignal;
}

/** The client that talks to the Jupyter server. */
export class TdbgClient implements ITdbgClient {
  constructor(options: TdbgClient.IOptions) {
    this._settings = options.serverSettings;
  }

  status(): Promise<IServerStatus> {
    return this._request('GET', ['status']);
  }

  runs(): Promise<IRunList> {
    return this._request('GET', ['runs']);
  }

  run(id: string): Promise<IRunDetail> {
    return this._request('GET', ['runs', id]);
  }

  edit(id: string, edit: IRunEdit): Promise<IRunSummary> {
    return this._request('PATCH', ['runs', id], { body: edit });
  }

  remove(id: string): Promise<void> {
    return this._request('DELETE', ['runs', id]);
  }

  tensors(id: string): Promise<ITensorList> {
    return this._request('GET', ['runs', id, 'tensors']);
  }

  async steps(id: string, mode?: string): Promise<ReadonlyArray<number>> {
    const answer = await this._request<{ steps: number[] }>(
      'GET',
      ['runs', id, 'steps'],
      { query: mode ? { mode } : {} }
    );
    return answer.steps;
  }

  async views(): Promise<ReadonlyArray<IViewInfo>> {
    const answer = await this._request<{ views: IViewInfo[] }>('GET', [
      'views'
    ]);
    return answer.views;
  }

  figure(
    id: string,
    view: string,
    params: ViewParams,
    signal?: AbortSignal
  ): Promise<IFigureAnswer> {
    return this._request('POST', ['runs', id, 'views', view], {
      body: { params },
      signal
    });
  }

  cancel(job: string): Promise<void> {
    return this._request('DELETE', ['jobs', job]);
  }

  rules(id: string): Promise<IRules> {
    return this._request('GET', ['runs', id, 'rules']);
  }

  async ruleCatalogue(): Promise<ReadonlyArray<IRuleInfo>> {
    const answer = await this._request<{ rules: IRuleInfo[] }>('GET', [
      'rules'
    ]);
    return answer.rules;
  }

  recheck(
    id: string,
    rule: string,
    thresholds: IThresholds
  ): Promise<IRecheck> {
    return this._request('POST', ['runs', id, 'rules', rule, 'check'], {
      body: { parameters: thresholds }
    });
  }

  recheckState(job: string): Promise<IRecheck> {
    return this._request('GET', ['jobs', job]);
  }

  report(id: string): Promise<IReport> {
    return this._request('POST', ['runs', id, 'report'], { body: {} });
  }

  reportState(job: string): Promise<IReport> {
    return this._request('GET', ['jobs', job]);
  }

  async reportPage(
    job: string,
    format: 'html' | 'notebook' = 'html'
  ): Promise<Blob> {
    const query = { format };
    return (
      await this._fetch('GET', ['jobs', job, 'report'], { query })
    ).blob();
  }

  async fix(id: string, finding: string): Promise<string> {
    const answer = await this._request<{ request: string }>(
      'POST',
      ['runs', id, 'fix'],
      { body: { finding } }
    );
    return answer.request;
  }

  async profile(id: string, steps: number): Promise<string> {
    const answer = await this._request<{ request: string }>(
      'POST',
      ['runs', id, 'profile'],
      { body: { steps } }
    );
    return answer.request;
  }

  profiles(id: string): Promise<IProfiling> {
    return this._request('GET', ['runs', id, 'profile']);
  }

  async stop(id: string, reason: string): Promise<string> {
    const answer = await this._request<{ request: string }>(
      'POST',
      ['runs', id, 'stop'],
      { body: { reason } }
    );
    return answer.request;
  }

  private async _request<T>(
    method: string,
    parts: ReadonlyArray<string>,
    options: IRequestOptions = {}
  ): Promise<T> {
    const response = await this._fetch(method, parts, options);
    return (
      response.status === 204 ? undefined : await response.json()
    ) as Promise<T>;
  }

  private async _fetch(
    method: string,
    parts: ReadonlyArray<string>,
    options: IRequestOptions = {}
  ): Promise<Response> {
    const url =
      URLExt.join(
        this._settings.baseUrl,
        'tdbg',
        ...parts.map(encodeURIComponent)
      ) + URLExt.objectToQueryString(options.query ?? {});
    const init: RequestInit = { method };
    if (options.body !== undefined) {
      init.body = JSON.stringify(options.body);
    }
    if (options.signal) {
      init.signal = options.signal;
    }
    const response = await ServerConnection.makeRequest(
      url,
      init,
      this._settings
    );
    if (!response.ok) {
      throw await ServerConnection.ResponseError.create(response);
    }
    return response;
  }

  private _settings: ServerConnection.ISettings;
}

/** Statics of the client. */
export namespace TdbgClient {
  /** How to reach the server. */
  export interface IOptions {
    /** From the application's service manager. */
    readonly serverSettings: ServerConnection.ISettings;
  }
}

/** HTTP status of `error`, or null when the server was not reached. */
export function httpStatus(error: unknown): number | null {
  return error instanceof ServerConnection.ResponseError
    ? error.response.status
    : null;
}

/** What a proxy answers while it does not reach the server behind it. */
const UNREACHED: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether the same question may be answered later: the server was not reached. */
export function mayPass(error: unknown): boolean {
  const status = httpStatus(error);
  return status === null
    ? error instanceof ServerConnection.NetworkError
    : UNREACHED.has(status);
}

/** One sentence about `error` for people. */
export function describeError(error: unknown): string {
  if (mayPass(error)) {
    return 'The server does not answer.';
  }
  return error instanceof Error ? error.message : String(error);
}
