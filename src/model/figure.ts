/**
 * One picture: asks the server for it when it is out of date and somebody looks.
 */
import type { JSONObject } from '@lumino/coreutils';
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
import { DrawPace } from './pace';
import { completeParams, movesWithCursor, rangeParam } from './params';
import type { RunModel } from './run';
import type { TdbgSettings } from './settings';
import type { Seconds } from './timeRange';

/** Shortest time between two pictures over time, ms: seconds of the machine move slowly. */
const SLOW_GAP_MS = 1000;

/** What such a picture counts for among those drawn as often as can be. */
const SLOW_SHARE = 0.25;

/** What a figure says about itself in `layout.meta.tdbg`. */
export interface IFigureMeta {
  /** What runs along the x axis. */
  readonly axis: 'step' | 'time' | null;
  /** Names of the x axes that carry it: `x`, `x2`. */
  readonly xAxes: ReadonlyArray<string>;
  /** One sentence for the panel and for those who cannot see it. */
  readonly caption: string;
  /** The step it shows, where it shows one. */
  readonly step: number | null;
  /** The tensor it shows, where it shows one. */
  readonly tensor: string;
}

/**
 * A picture of a run, as fresh as its panel deserves.
 *
 * #### Notes
 * At most one request is under way; what happens meanwhile leads to one more, never to a queue.
 * While inactive it asks for nothing, and catches up when it becomes active again.
 */
export class FigureModel implements IDisposable {
  constructor(options: FigureModel.IOptions) {
    this.run = options.run;
    this.view = options.view;
    this._client = options.client;
    this._settings = options.settings;
    this._pace = options.pace ?? new DrawPace();
    this._chosen = options.params ?? {};
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
    return this._pending;
  }

  /** Why there is no newer picture; empty when all is well. */
  get error(): string {
    return this._error;
  }

  /** Whether a request is under way. */
  get isLoading(): boolean {
    return this._inFlight !== null;
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
    return Private.readMeta(this.figure, this.view);
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
    return this._isActive;
  }
  set isActive(value: boolean) {
    if (value === this._isActive || this._isDisposed) {
      return;
    }
    this._isActive = value;
    if (!value) {
      this._pace.forget(this);
    }
    if (value && this._isDirty) {
      this._schedule();
    }
  }

  /** Choose parameters; the others stay. */
  choose(params: ViewParams): void {
    const chosen = { ...this._chosen, ...params };
    if (JSON.stringify(chosen) === JSON.stringify(this._chosen)) {
      return;
    }
    this._chosen = chosen;
    this._abort?.abort();
    this._paramsChanged.emit(chosen);
    this._changed.emit();
    this.invalidate();
  }

  /** The picture is out of date. */
  invalidate(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDirty = true;
    if (this._isActive) {
      this._schedule();
    }
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
    if (this._isActive) {
      this._pace.note(this, this._isSlow ? ms * SLOW_SHARE : ms);
    }
  }

  /** Take in a message about a job. */
  handleMessage(message: StreamMessage): void {
    if (
      this._isDisposed ||
      message.type !== 'job' ||
      message.job !== this._pending?.job
    ) {
      return;
    }
    if (message.state === 'running' || message.state === 'queued') {
      this._pending = {
        job: message.job,
        progress: message.progress,
        message: message.message
      };
      this._awaitJob();
      this._changed.emit();
    } else {
      this._pending = null;
      this._changed.emit();
      if (message.state !== 'cancelled') {
        this.invalidate();
      }
    }
  }

  /** Give up the job that refines the picture. */
  async cancel(): Promise<void> {
    const pending = this._pending;
    if (!pending) {
      return;
    }
    this._pending = null;
    clearTimeout(this._jobTimer);
    this._changed.emit();
    try {
      await this._client.cancel(pending.job);
    } catch (error) {
      // The job ended by itself: nothing is left to cancel.
      console.warn('Job could not be cancelled', describeError(error));
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    clearTimeout(this._timer);
    clearTimeout(this._jobTimer);
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
    if (!(fixed && this.figure) && this._pending === null) {
      this.invalidate();
    }
  }

  /** The run has been read: what waited for it, or failed for want of a tensor, may ask again. */
  private _onTensors(): void {
    if (this._answer === null) {
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
      this._lastStart = 0;
      this._changed.emit();
      this.invalidate();
    }
  }

  /** Ask now, or as soon as the present request, the rate and the other pictures allow. */
  private _schedule(): void {
    if (
      this._inFlight !== null ||
      this._timer !== undefined ||
      this._isWaiting
    ) {
      return;
    }
    if (this.run.state === 'loading') {
      // Its tensors, on their arrival, ask again.
      return;
    }
    const gap = Math.max(
      1000 / this._settings.figuresPerSecond,
      this._pace.gap,
      this._isSlow ? SLOW_GAP_MS : 0
    );
    const wait = Math.max(0, this._lastStart + gap - Date.now());
    this._timer = setTimeout(() => {
      this._timer = undefined;
      this._isWaiting = true;
      this._pace.turn(() => this._ask());
    }, wait);
  }

  /** It is its turn. */
  private async _ask(): Promise<void> {
    this._isWaiting = false;
    if (this._isActive && this._isDirty && !this._isDisposed) {
      await (this._inFlight = this._fetch());
    }
  }

  private get _isSlow(): boolean {
    return this.view.axis === 'time';
  }

  private async _fetch(): Promise<void> {
    this._isDirty = false;
    this._lastStart = Date.now();
    const step = this.run.cursor.requested;
    const params = this.params;
    this._sentStep = step;
    const abort = (this._abort = new AbortController());
    try {
      const answer = await this._client.figure(
        this.run.id,
        this.view.name,
        movesWithCursor(this.view) && step !== null
          ? { ...params, step }
          : params,
        abort.signal
      );
      if (!this._isDisposed && !abort.signal.aborted) {
        this._accept(answer);
      }
    } catch (error) {
      if (!this._isDisposed && !abort.signal.aborted) {
        this._error = describeError(error);
        // Whatever became of the job, the next picture tells.
        this._pending = null;
        clearTimeout(this._jobTimer);
      }
    }
    this._inFlight = null;
    if (this._isDisposed) {
      return;
    }
    this._changed.emit();
    if (this._isDirty && this._isActive) {
      this._schedule();
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
    this._asOf = Date.now();
    this._pending = answer.pending;
    this._awaitJob();
  }

  /** Should the stream be silent about the job, ask again. */
  private _awaitJob(): void {
    clearTimeout(this._jobTimer);
    if (this._pending) {
      this._jobTimer = setTimeout(() => this.invalidate(), 1500);
    }
  }

  private _abort: AbortController | null = null;
  private _answer: IFigureAnswer | null = null;
  private _asOf: number | null = null;
  private _changed = new Signal<this, void>(this);
  private _chosen: ViewParams;
  private _client: ITdbgClient;
  private _error = '';
  private _inFlight: Promise<void> | null = null;
  private _isActive = false;
  private _isDirty = true;
  private _isDisposed = false;
  private _isWaiting = false;
  private _jobTimer: ReturnType<typeof setTimeout> | undefined;
  private _lastStart = 0;
  private _paramsChanged = new Signal<this, ViewParams>(this);
  private _pace: DrawPace;
  private _pending: IPendingJob | null = null;
  private _sentStep: number | null = null;
  private _settings: TdbgSettings;
  private _timer: ReturnType<typeof setTimeout> | undefined;
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
  }
}

namespace Private {
  export function readMeta(
    figure: IFigureJson | null,
    view: IViewInfo
  ): IFigureMeta {
    const outer = figure?.layout?.['meta'] as JSONObject | undefined;
    const meta = (outer?.['tdbg'] ?? {}) as JSONObject;
    const axes = meta['x_axes'];
    return {
      axis:
        meta['axis'] === 'step' || meta['axis'] === 'time'
          ? meta['axis']
          : view.axis,
      xAxes: Array.isArray(axes) ? axes.map(String) : ['x'],
      caption: typeof meta['caption'] === 'string' ? meta['caption'] : '',
      step: typeof meta['step'] === 'number' ? meta['step'] : null,
      tensor: typeof meta['tensor'] === 'string' ? meta['tensor'] : ''
    };
  }
}
