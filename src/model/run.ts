/**
 * One opened run: what is known of it, and its step cursor.
 */
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../api/client';
import { describeError, httpStatus } from '../api/client';
import type { IRules, IRunDetail, IRunSummary, ITensorInfo } from '../api/wire';
import { StepCursor } from './cursor';
import { ProfilingModel } from './profiling';
import { Refresher } from './refresher';
import { ReportModel } from './report';
import { Retry } from './retry';
import { TimeRange } from './timeRange';

/** Whether the run can be shown. */
export type RunState = 'loading' | 'ready' | 'missing' | 'error';

const NO_RULES: IRules = {
  states: [],
  findings: [],
  muted: [],
  fixes: {},
  answers: {}
};

/**
 * What is known of one run.
 *
 * #### Notes
 * It costs nothing while nobody retains it. While retained, the stream tells of each new version
 * and the slower facts (detail, tensors, rules, steps) are asked for at most every `slowMs`.
 */
export class RunModel implements IDisposable {
  constructor(options: RunModel.IOptions) {
    this.id = options.id;
    this._client = options.client;
    this.cursor = new StepCursor({ following: options.follow ?? true });
    this.profiling = new ProfilingModel({
      client: options.client,
      run: options.id
    });
    this.report = new ReportModel({ client: options.client, run: options.id });
    this._slow = new Refresher(() => this.refresh(), options.slowMs ?? 2000);
  }

  /** Identity on the wire. */
  readonly id: string;

  /** The moment all pictures of the run show. */
  readonly cursor: StepCursor;

  /** The part of its time that all pictures over time show. */
  readonly time = new TimeRange();

  /** The profile of its next steps that was asked for here. */
  readonly profiling: ProfilingModel;

  /** The report on it that was asked for here. */
  readonly report: ReportModel;

  /** Emits after summary, detail or state changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emits after the data grew: pictures are out of date. */
  get versionChanged(): ISignal<this, number> {
    return this._versionChanged;
  }

  /** Emits after the list of tensors changed. */
  get tensorsChanged(): ISignal<this, void> {
    return this._tensorsChanged;
  }

  /** Emits after rule states or findings changed. */
  get rulesChanged(): ISignal<this, void> {
    return this._rulesChanged;
  }

  /** Emits when the first user comes or the last one goes. */
  get retainedChanged(): ISignal<this, boolean> {
    return this._retainedChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether it can be shown. */
  get state(): RunState {
    return this._state;
  }

  /** Why it cannot. */
  get error(): string {
    return this._error;
  }

  /** The line of the list of runs, as fresh as possible. */
  get summary(): IRunSummary | null {
    return this._summary;
  }

  /** Everything else; older than `summary` by some seconds. */
  get detail(): IRunDetail | null {
    return this._detail;
  }

  /** Grows with each change of the data. */
  get version(): number {
    return this._version;
  }

  /** Its tensors, in order of first appearance. */
  get tensors(): ReadonlyArray<ITensorInfo> {
    return this._tensors;
  }

  /** Rule states and findings. */
  get rules(): IRules {
    return this._rules;
  }

  /** Its name, or its id while that is unknown. */
  get name(): string {
    return this._summary?.name || this.id;
  }

  /** Where it lies, if other runs have its name; else empty. */
  get where(): string {
    return this._where;
  }
  set where(value: string) {
    if (value !== this._where) {
      this._where = value;
      this._changed.emit();
    }
  }

  /** Whether anybody shows it. */
  get isRetained(): boolean {
    return this._users > 0;
  }

  /** Keep it up to date until the answer is disposed. */
  retain(): IDisposable {
    this._users += 1;
    if (this._users === 1) {
      this._retainedChanged.emit(true);
      void this.read();
    }
    return new DisposableDelegate(() => {
      this._users -= 1;
      if (this._users === 0 && !this._isDisposed) {
        this._retainedChanged.emit(false);
      }
    });
  }

  /** Take in a fresher line of the list. */
  setSummary(summary: IRunSummary): void {
    const old = this._summary;
    const isBack = this._state === 'missing';
    this._summary = summary;
    if (isBack) {
      this._state = 'loading';
      // Pictures wait for its tensors, were they the same as before.
      this._tensorSignature = '';
    }
    if ((summary.last_write_ns ?? 0) > (old?.last_write_ns ?? 0)) {
      // Not of one that was overtaken on its way.
      this.cursor.cut(summary.last_step);
    }
    this.cursor.extend(summary.last_step);
    if (summary.status !== 'running') {
      this.profiling.end();
    }
    this._changed.emit();
    const settled =
      !isBack &&
      old !== null &&
      old.status === summary.status &&
      old.last_write_ns === summary.last_write_ns &&
      JSON.stringify(old.findings) === JSON.stringify(summary.findings);
    if (!settled && this.isRetained) {
      void this._slow.invoke();
    }
  }

  /** The data has reached `version`. */
  setVersion(version: number): void {
    if (version !== this._version) {
      this._version = version;
      this._versionChanged.emit(version);
      if (this.isRetained) {
        void this._slow.invoke();
      }
    }
  }

  /** The run is gone. */
  setMissing(): void {
    this._state = 'missing';
    this.cursor.pause();
    this._changed.emit();
  }

  /** Ask for everything now. */
  refresh(): Promise<void> {
    const asked = this._fetch().finally(() => {
      if (this._asked === asked) {
        this._asked = null;
      }
    });
    this._asked = asked;
    return asked;
  }

  /** Wait for what is being asked for, or ask for it. */
  read(): Promise<void> {
    return this._asked ?? this.refresh();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._slow.dispose();
    this._retry.dispose();
    this.cursor.dispose();
    this.time.dispose();
    this.profiling.dispose();
    this.report.dispose();
    Signal.clearData(this);
  }

  private async _fetch(): Promise<void> {
    if (this._state === 'missing') {
      return;
    }
    const turn = ++this._turn;
    const isWanted = (): boolean => !this._isDisposed && turn > this._answered;
    try {
      const [detail, tensors, rules, steps] = await Promise.all([
        this._client.run(this.id),
        this._client.tensors(this.id),
        this._client.rules(this.id),
        this._client.steps(this.id)
      ]);
      if (!isWanted()) {
        return;
      }
      this._answered = turn;
      this._retry.succeeded();
      this._error = '';
      this._state = 'ready';
      this._detail = detail;
      this._summary = detail;
      this.cursor.setSteps(detail.last_step < 0 ? [] : steps);
      this.cursor.extend(detail.last_step);
      this._setTensors(tensors.tensors);
      this._setRules(rules);
      this._changed.emit();
      if (detail.version !== this._version) {
        this._version = detail.version;
        this._versionChanged.emit(detail.version);
      }
    } catch (error) {
      if (!isWanted()) {
        return;
      }
      this._retry.failed(error);
      if (httpStatus(error) === 404) {
        this.setMissing();
      } else if (this._detail === null) {
        this._state = 'error';
        this._error = describeError(error);
        this._changed.emit();
      }
    }
  }

  private _setTensors(tensors: ReadonlyArray<ITensorInfo>): void {
    const signature = JSON.stringify(tensors);
    if (signature !== this._tensorSignature) {
      this._tensorSignature = signature;
      this._tensors = tensors;
      this._tensorsChanged.emit();
    }
  }

  private _setRules(rules: IRules): void {
    const signature = JSON.stringify(rules);
    if (signature !== this._rulesSignature) {
      this._rulesSignature = signature;
      this._rules = rules;
      this._rulesChanged.emit();
    }
  }

  /** Turn of the last answer: one to an earlier question may come after it. */
  private _answered = 0;
  /** The last question, until it is answered. */
  private _asked: Promise<void> | null = null;
  private _changed = new Signal<this, void>(this);
  private _client: ITdbgClient;
  private _detail: IRunDetail | null = null;
  private _error = '';
  private _isDisposed = false;
  private _retry = new Retry(() => {
    if (this.isRetained) {
      void this.refresh();
    }
  });
  private _retainedChanged = new Signal<this, boolean>(this);
  private _rules: IRules = NO_RULES;
  private _rulesChanged = new Signal<this, void>(this);
  private _rulesSignature = '';
  private _slow: Refresher;
  private _state: RunState = 'loading';
  private _summary: IRunSummary | null = null;
  private _tensorSignature = '';
  private _tensors: ReadonlyArray<ITensorInfo> = [];
  private _tensorsChanged = new Signal<this, void>(this);
  /** Number of times that everything was asked for. */
  private _turn = 0;
  private _users = 0;
  private _version = -1;
  private _versionChanged = new Signal<this, number>(this);
  private _where = '';
}

/** Statics of the run. */
export namespace RunModel {
  /** What it needs. */
  export interface IOptions {
    /** Identity on the wire. */
    readonly id: string;
    /** Where to ask. */
    readonly client: ITdbgClient;
    /** Whether the cursor follows at first. */
    readonly follow?: boolean;
    /** Shortest time between two questions for the slower facts, ms. */
    readonly slowMs?: number;
  }
}
