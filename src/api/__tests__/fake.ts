/**
 * A server and a stream that live in the test.
 */
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../client';
import type { IRunStream, StreamState } from '../stream';
import type {
  IFigureAnswer,
  IFinding,
  IGpu,
  IHost,
  IProfileRequest,
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
  ITensorInfo,
  ITensorList,
  IThresholds,
  IViewInfo,
  IViewParam,
  StreamMessage,
  ViewParams
} from '../wire';

/** A finished run of 100 steps, but for `over`. */
export function summary(over: Partial<IRunSummary> = {}): IRunSummary {
  return {
    id: 'a',
    name: 'first',
    path: 'runs/first',
    status: 'finished',
    created_ns: 1e18,
    ended_ns: null,
    last_step: 99,
    last_write_ns: null,
    steps_per_second: null,
    tags: [],
    notes: '',
    framework: 'pytorch',
    loss: null,
    findings: { notice: 0, warning: 0, critical: 0 },
    open: false,
    ...over
  };
}

/** An activation, but for `over`. */
export function tensor(over: Partial<ITensorInfo> = {}): ITensorInfo {
  return {
    name: 'activation/conv1',
    kind: 'activation',
    module: 'conv1',
    dtype: 'float32',
    shape: [64, 16],
    collections: [],
    findings: 0,
    severity: null,
    ...over
  };
}

/** A parameter. */
export function param(over: Partial<IViewParam> = {}): IViewParam {
  return {
    name: 'tensor',
    label: 'Tensor',
    kind: 'tensor',
    default: null,
    choices: [],
    minimum: null,
    maximum: null,
    tensor_kinds: [],
    help: '',
    ...over
  };
}

/** A view of one tensor. */
export function view(over: Partial<IViewInfo> = {}): IViewInfo {
  return {
    name: 'histogram',
    title: 'Histogram',
    description: '',
    axis: 'step',
    heavy: false,
    params: [param(), param({ name: 'step', kind: 'step' })],
    ...over
  };
}

/** A finding. */
export function finding(over: Partial<IFinding> = {}): IFinding {
  return {
    id: 'f1',
    rule: 'dead_relu',
    severity: 'warning',
    step_first: 10,
    step_last: 20,
    message: 'Half of relu1 is dead.',
    tensor: 'activation/relu1',
    module: 'relu1',
    evidence: {},
    advice: [],
    view: null,
    rank: null,
    time_ns: 0,
    cause: '',
    fix: null,
    ...over
  };
}

/** A GPU that is half busy. */
export function gpu(over: Partial<IGpu> = {}): IGpu {
  return {
    device: 'gpu0',
    name: 'Fake A100',
    percent: 50,
    memory_used: 20e9,
    memory_total: 80e9,
    temperature_c: 61,
    power_w: 250.5,
    answers: true,
    ...over
  };
}

/** A machine without a GPU, a quarter of it busy. */
export function host(over: Partial<IHost> = {}): IHost & { type: 'host' } {
  return {
    type: 'host',
    time_ns: 1e18,
    cpu: 25,
    cores: 8,
    memory_used: 8e9,
    memory_total: 32e9,
    swap: null,
    disk_read: 1e6,
    disk_write: 2e6,
    net_recv: 3000,
    net_sent: 1000,
    gpus: [],
    gpu_problem: '',
    ...over
  };
}

/** Answers from memory; keeps what it was asked. */
export class FakeServer implements ITdbgClient {
  list: IRunSummary[] = [summary()];
  isTruncated = false;
  unread: ReadonlyArray<string> = [];
  tensorList: ITensorInfo[] = [tensor()];
  stepList: number[] = [0, 10, 20, 99];
  viewList: IViewInfo[] = [view()];
  ruleList: IRules = {
    states: [],
    findings: [],
    muted: [],
    fixes: {},
    answers: {}
  };
  catalogue: IRuleInfo[] = [];
  /** Answers to questions for a check, the last one again and again. */
  rechecks: IRecheck[] = [];
  /** Answers to questions for a report, the last one again and again. */
  reports: IReport[] = [];
  /** Answers to looks at the request `request`, the last one again and again. */
  profileStates: Array<Partial<IProfileRequest>> = [];
  version = 1;
  /** What every method throws, if anything. */
  failure: Error | null = null;
  /** Requests for figures that are not answered yet. */
  readonly figures: Array<{
    view: string;
    params: ViewParams;
    resolve: (answer: IFigureAnswer) => void;
    reject: (error: Error) => void;
  }> = [];
  readonly asked: string[] = [];

  status(): Promise<IServerStatus> {
    return this._answer('status', { version: '0', roots: ['r'], gpu: false });
  }

  runs(): Promise<IRunList> {
    return this._answer('runs', {
      runs: [...this.list],
      truncated: this.isTruncated,
      unread: this.unread
    });
  }

  run(id: string): Promise<IRunDetail> {
    const found = this.list.find(run => run.id === id) ?? summary();
    return this._answer('run', {
      ...found,
      version: this.version,
      ranks: [0],
      modes: ['train'],
      first_step: 0,
      hyperparameters: {},
      git: null,
      host: '',
      cost: null,
      error: null
    });
  }

  edit(id: string, edit: IRunEdit): Promise<IRunSummary> {
    this.list = this.list.map(run =>
      run.id === id ? { ...run, ...edit } : run
    );
    return this._answer('edit', summary({ ...edit, id }));
  }

  remove(): Promise<void> {
    return this._answer('remove', undefined);
  }

  tensors(): Promise<ITensorList> {
    return this._answer('tensors', {
      tensors: [...this.tensorList],
      steps: { first: 0, last: 99, count: 4 }
    });
  }

  steps(): Promise<ReadonlyArray<number>> {
    return this._answer('steps', [...this.stepList]);
  }

  views(): Promise<ReadonlyArray<IViewInfo>> {
    return this._answer('views', [...this.viewList]);
  }

  figure(
    _run: string,
    name: string,
    params: ViewParams
  ): Promise<IFigureAnswer> {
    this.asked.push('figure');
    return new Promise((resolve, reject) => {
      this.figures.push({ view: name, params, resolve, reject });
    });
  }

  cancel(job: string): Promise<void> {
    return this._answer(`cancel ${job}`, undefined);
  }

  rules(): Promise<IRules> {
    return this._answer('rules', this.ruleList);
  }

  ruleCatalogue(): Promise<ReadonlyArray<IRuleInfo>> {
    return this._answer('catalogue', this.catalogue);
  }

  recheck(
    _run: string,
    rule: string,
    thresholds: IThresholds
  ): Promise<IRecheck> {
    return this._nextRecheck(`recheck ${rule} ${JSON.stringify(thresholds)}`);
  }

  recheckState(job: string): Promise<IRecheck> {
    return this._nextRecheck(`recheckState ${job}`);
  }

  report(run: string): Promise<IReport> {
    return this._nextReport(`report ${run}`);
  }

  reportState(job: string): Promise<IReport> {
    return this._nextReport(`reportState ${job}`);
  }

  reportPage(job: string): Promise<Blob> {
    return this._answer(`reportPage ${job}`, new Blob(['<p>page']));
  }

  fix(_run: string, finding: string): Promise<string> {
    return this._answer(`fix ${finding}`, 'request');
  }

  profile(_run: string, steps: number): Promise<string> {
    return this._answer(`profile ${steps}`, 'request');
  }

  profiles(): Promise<IProfiling> {
    const [next] = this.profileStates;
    if (this.profileStates.length > 1) {
      this.profileStates.shift();
    }
    const request = { id: 'request', state: 'requested', answer: '' } as const;
    return this._answer('profiles', {
      requests: next ? [{ ...request, ...next }] : []
    });
  }

  stop(): Promise<string> {
    return this._answer('stop', 'request');
  }

  private _nextRecheck(what: string): Promise<IRecheck> {
    const [next] = this.rechecks;
    if (this.rechecks.length > 1) {
      this.rechecks.shift();
    }
    return this._answer(what, next);
  }

  private _nextReport(what: string): Promise<IReport> {
    const [next] = this.reports;
    if (this.reports.length > 1) {
      this.reports.shift();
    }
    return this._answer(what, next);
  }

  private async _answer<T>(what: string, value: T): Promise<T> {
    this.asked.push(what);
    if (this.failure) {
      throw this.failure;
    }
    return value;
  }
}

/** A stream whose state and messages the test decides. */
export class FakeStream implements IRunStream {
  state: StreamState = 'idle';
  watched: ReadonlyArray<string> = [];
  isHostWatched = false;
  isDisposed = false;
  /** How often it was told that the server is there. */
  reconnects = 0;

  get stateChanged(): ISignal<this, StreamState> {
    return this._stateChanged;
  }

  get message(): ISignal<this, StreamMessage> {
    return this._message;
  }

  start(): void {
    this.setState('connecting');
  }

  reconnect(): void {
    this.reconnects += 1;
  }

  watch(runs: ReadonlyArray<string>): void {
    this.watched = runs;
  }

  watchHost(on: boolean): void {
    this.isHostWatched = on;
  }

  setState(state: StreamState): void {
    this.state = state;
    this._stateChanged.emit(state);
  }

  say(message: StreamMessage): void {
    this._message.emit(message);
  }

  dispose(): void {
    this.isDisposed = true;
    Signal.clearData(this);
  }

  private _message = new Signal<this, StreamMessage>(this);
  private _stateChanged = new Signal<this, StreamState>(this);
}

/** Let all that is pending happen. */
export async function settle(ms = 0): Promise<void> {
  await new Promise(resolve => setTimeout(resolve, ms));
}
