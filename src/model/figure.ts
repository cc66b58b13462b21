/**
 * One picture: asks the server for it when it is out of date and somebody looks.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../api/client';
import { describeError } from '../api/client';
import type {
  IFigureAnswer,
  IFigureJson,
  IPendingJob,
  IViewInfo,
  StreamMessage,
  ViewParams
} from '../api/wire';
import { RunsBeside } from './beside';
import { FigureJob } from './figureJob';
import type { IFigureMeta } from './figureMeta';
import { figureMeta } from './figureMeta';
import { FigureSchedule } from './figureSchedule';
import { DrawPace } from './pace';
import { completeParams, movesWithCursor, rangeParam } from './params';
import { Retry } from './retry';
import type { RunModel } from './run';
import type { TdbgSettings } from './settings';
import type { Seconds } from './timeRange';

/** Shortest time between two pictures over time, ms: seconds of the machine move slowly. */
const SLOW_GAP_MS = 1000;

/** What such a picture counts for among those drawn as often as can be. */
const SLOW_SHARE = 0.25;

/**
 * A picture of a run, as fresh as its panel deserves.
 */
export class FigureModel implements IDisposable {
  constructor(options: FigureModel.IOptions) {
    this.run = options.run;
    this.view = options.view;
    this._client = options.client;
    this._settings = options.settings;
    this._pace = options.pace ?? new DrawPace();
    this._chosen = options.params ?? {};
    const { open } = options;
    this._beside = open ? new RunsBeside({ view: this.view, open }) : null;
    this._beside?.changed.connect(this.invalidate, this);
    this._job = new FigureJob({
      client: options.client,
      onChanged: () => this._changed.emit(),
      onEnded: () => this.invalidate()
    });
    this._schedule = new FigureSchedule({
      pace: this._pace,
      gap: () => this._gap,
      // The tensors of a run that is being read, or is back, ask again on their arrival.
      isReady: () =>
        this.run.state !== 'loading' && this.run.state !== 'missing',
      ask: () => this._ask(),
      onAnswered: () => this._changed.emit()
    });
    this.run.versionChanged.connect(this._onVersion, this);
    this.run.tensorsChanged.connect(this._onTensors, this);
    this.run.cursor.changed.connect(this._onCursor, this);
    this.run.time.changed.connect(this._onTime, this);
    this._settings.changed.connect(this.invalidate, this);
  }

  /** The run it shows. */
  readonly run: RunModel;

  /** The view that draws it. */
  readonly view: IViewInfo;

  /** Emits after anything below changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emits after the chosen parameters changed. */
  get paramsChanged(): ISignal<this, ViewParams> {
    return this._paramsChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The picture; null before the first. */
  get figure(): IFigureJson | null {
    return this._answer?.figure ?? null;
  }

  /** The job that refines it, while there is one. */
  get pending(): IPendingJob | null {
    return this._job.pending;
  }

  /** Why there is no newer picture; empty when all is well. */
  get error(): string {
    return this._error;
  }

  /** Whether a request is under way. */
  get isLoading(): boolean {
    return this._schedule.isAsking;
  }

  /** Epoch time the picture arrived, ms. */
  get asOf(): number | null {
    return this._asOf;
  }

  /** Time the server took to draw it, ms. */
  get ms(): number {
    return this._answer?.ms ?? 0;
  }

  /** What the figure says about itself. */
  get meta(): IFigureMeta {
    return figureMeta(this.figure, this.view);
  }

  /** What was chosen. */
  get chosen(): ViewParams {
    return this._chosen;
  }

  /** What is sent, but for the step. */
  get params(): ViewParams {
    const params = completeParams(
      this.view,
      this._chosen,
      this._settings.points
    );
    const shared = this.sharedRange;
    return shared ? { ...params, range: shared } : params;
  }

  /** The range of time that it shows because all pictures of the run do; null when there is none. */
  get sharedRange(): Seconds | null {
    const own =
      this._chosen['range'] !== undefined && this._chosen['range'] !== null;
    const isLinked =
      this._settings.linkRanges && !own && rangeParam(this.view) !== undefined;
    return isLinked ? this.run.time.value : null;
  }

  /** Changes when zoom and pan should be forgotten. */
  get revision(): string {
    return JSON.stringify([this.run.id, this.view.name, this.params]);
  }

  /** Whether somebody looks. */
  get isActive(): boolean {
    return this._schedule.isActive;
  }
  set isActive(value: boolean) {
    if (!value) {
      this._pace.forget(this);
    }
    this._schedule.isActive = value;
    this._beside?.follow(this._chosen, value && !this._isDisposed);
  }

  /** Choose parameters; the others stay. */
  choose(params: ViewParams): void {
    const chosen = { ...this._chosen, ...params };
    if (JSON.stringify(chosen) === JSON.stringify(this._chosen)) {
      return;
    }
    this._chosen = chosen;
    this._beside?.follow(chosen, this.isActive);
    this._abort?.abort();
    this._paramsChanged.emit(chosen);
    this._changed.emit();
    this.invalidate();
  }

  /** The picture is out of date. */
  invalidate(): void {
    this._schedule.invalidate();
  }

  /** Show a part of the time, here and, where ranges are linked, in the other pictures of the run. */
  showRange(range: Seconds | null): void {
    if (!rangeParam(this.view)) {
      return;
    }
    if (this._settings.linkRanges) {
      this.choose({ range: null });
      this.run.time.value = range;
    } else {
      this.choose({ range: range && [...range] });
    }
  }

  /** The picture was drawn, which took `ms`. */
  noteDrawing(ms: number): void {
    if (this.isActive) {
      this._pace.note(this, this._isSlow ? ms * SLOW_SHARE : ms);
    }
  }

  /** Take in a message about a job. */
  handleMessage(message: StreamMessage): void {
    this._job.handleMessage(message);
  }

  /** Give up the job that refines the picture. */
  cancel(): Promise<void> {
    return this._job.cancel();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._schedule.dispose();
    this._retry.dispose();
    this._job.dispose();
    this._beside?.dispose();
    this._pace.forget(this);
    this._abort?.abort();
    this.run.versionChanged.disconnect(this._onVersion, this);
    this.run.tensorsChanged.disconnect(this._onTensors, this);
    this.run.cursor.changed.disconnect(this._onCursor, this);
    this.run.time.changed.disconnect(this._onTime, this);
    this._settings.changed.disconnect(this.invalidate, this);
    Signal.clearData(this);
  }

  private _onVersion(): void {
    const { cursor } = this.run;
    const fixed = movesWithCursor(this.view) && cursor.requested !== null;
    // A step in the past does not change, and a running job would only be started again.
    if (!(fixed && this.figure) && this.pending === null) {
      this.invalidate();
    }
  }

  /** The run has been read: what waited for it, or failed for want of a tensor, may ask again. */
  private _onTensors(): void {
    if (this._answer === null || this._error) {
      this.invalidate();
    }
  }

  private _onCursor(): void {
    if (
      movesWithCursor(this.view) &&
      this.run.cursor.requested !== this._sentStep
    ) {
      this.invalidate();
    }
  }

  /** Another part of the time: a picture of the one before, should it be under way, is of no use. */
  private _onTime(): void {
    if (rangeParam(this.view) && this._settings.linkRanges) {
      this._abort?.abort();
      this._schedule.hurry();
      this._changed.emit();
      this.invalidate();
    }
  }

  /** Shortest time between two requests, ms. */
  private get _gap(): number {
    return Math.max(
      1000 / this._settings.figuresPerSecond,
      this._pace.gap,
      this._isSlow ? SLOW_GAP_MS : 0
    );
  }

  private get _isSlow(): boolean {
    return this.view.axis === 'time';
  }

  private async _ask(): Promise<void> {
    const step = this.run.cursor.requested;
    const params = this.params;
    this._sentStep = step;
    const abort = (this._abort = new AbortController());
    const isWanted = () => !this._isDisposed && !abort.signal.aborted;
    try {
      const answer = await this._client.figure(
        this.run.id,
        this.view.name,
        movesWithCursor(this.view) && step !== null
          ? { ...params, step }
          : params,
        abort.signal
      );
      if (isWanted()) {
        this._accept(answer);
      }
    } catch (error) {
      if (isWanted()) {
        this._error = describeError(error);
        this._retry.failed(error);
        // Whatever became of the job, the next picture tells.
        this._job.pending = null;
      }
    }
  }

  private _accept(answer: IFigureAnswer): void {
    // A picture that has not changed is kept, and need not be drawn again.
    const same =
      this.view.axis !== 'step' &&
      this._answer !== null &&
      JSON.stringify(answer.figure) === JSON.stringify(this._answer.figure);
    this._answer = same ? { ...answer, figure: this._answer!.figure } : answer;
    this._error = '';
    this._retry.succeeded();
    this._asOf = Date.now();
    this._job.pending = answer.pending;
  }

  private _abort: AbortController | null = null;
  private _answer: IFigureAnswer | null = null;
  private _asOf: number | null = null;
  private _beside: RunsBeside | null;
  private _changed = new Signal<this, void>(this);
  private _chosen: ViewParams;
  private _client: ITdbgClient;
  private _error = '';
  private _isDisposed = false;
  private _job: FigureJob;
  private _paramsChanged = new Signal<this, ViewParams>(this);
  private _pace: DrawPace;
  private _retry = new Retry(() => this.invalidate());
  private _schedule: FigureSchedule;
  private _sentStep: number | null = null;
  private _settings: TdbgSettings;
}

/** Statics of the figure. */
export namespace FigureModel {
  /** What it needs. */
  export interface IOptions {
    /** The run it shows. */
    readonly run: RunModel;
    /** The view that draws it. */
    readonly view: IViewInfo;
    /** Where to ask. */
    readonly client: ITdbgClient;
    /** How often, and how finely. */
    readonly settings: TdbgSettings;
    /** What is chosen at first. */
    readonly params?: ViewParams;
    /** Shared by all pictures of a page. */
    readonly pace?: DrawPace;
    /** Gives another run that is in the picture by its id; without it only its own is followed. */
    readonly open?: (id: string) => RunModel;
  }
}
