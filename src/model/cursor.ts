/**
 * The step cursor of a run: the one moment that all its pictures show.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/**
 * Where the cursor stands among the steps that have data.
 *
 * #### Notes
 * While it follows, `step` is the last step and grows with the run. Any step that is set is
 * snapped to the nearest one that has data, and then held: the list of steps of a long run is
 * thinned out anew each time it is asked for, which must not move what is looked at.
 */
export class StepCursor implements IDisposable {
  constructor(options: StepCursor.IOptions = {}) {
    this._following = options.following ?? true;
    this._playMs = options.playMs ?? 10_000;
    this._frameMs = options.frameMs ?? 150;
  }

  /** Emits after anything below changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emits after `range` changed. */
  get rangeChanged(): ISignal<this, void> {
    return this._rangeChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The steps zoomed to in all pictures of the run; null for all of them. */
  get range(): readonly [number, number] | null {
    return this._range;
  }
  set range(range: readonly [number, number] | null) {
    const old = this._range;
    const same = old?.[0] === range?.[0] && old?.[1] === range?.[1];
    if (!same) {
      this._range = range;
      this._rangeChanged.emit();
    }
  }

  /** Steps with data, ascending. */
  get steps(): ReadonlyArray<number> {
    return this._steps;
  }

  /** The step shown; -1 while the run has none. */
  get step(): number {
    return this._following || this._step < 0 ? this.last : this._step;
  }

  /** The step to ask the server for: null means the latest. */
  get requested(): number | null {
    return this._following || this._step < 0 ? null : this._step;
  }

  /** First step with data; -1 when there is none. */
  get first(): number {
    return this._steps.length > 0 ? this._steps[0] : -1;
  }

  /** Last step with data; -1 when there is none. */
  get last(): number {
    return this._steps.length > 0 ? this._steps[this._steps.length - 1] : -1;
  }

  /** Whether it stays at the last step while the run grows. */
  get following(): boolean {
    return this._following;
  }

  /** Whether it is moving by itself. */
  get playing(): boolean {
    return this._timer !== null;
  }

  /** Replace the steps that have data. */
  setSteps(steps: ReadonlyArray<number>): void {
    const old = this._steps;
    if (
      old.length === steps.length &&
      old.every((step, i) => step === steps[i])
    ) {
      return;
    }
    this._steps = steps;
    if (this._step > this.last || this._step < this.first) {
      this._step = this._nearest(this._step);
    }
    this._changed.emit();
  }

  /** The run has reached `step`. */
  extend(step: number): void {
    if (step > this.last) {
      this._steps = [...this._steps, step];
      this._changed.emit();
    }
  }

  /** The run goes on at `step`: those beyond it are made anew. */
  cut(step: number): void {
    if (step >= 0 && step < this.last) {
      this.setSteps([...this._steps.filter(each => each < step), step]);
    }
  }

  /** Show the step nearest to `step`, and no longer follow. */
  set(step: number): void {
    this.pause();
    this._moveTo(this._nearest(step));
  }

  /** Go `count` saved steps forward, or back when negative. */
  move(count: number): void {
    const { _steps: steps } = this;
    if (steps.length === 0) {
      return;
    }
    const index = steps.indexOf(this._nearest(this.step)) + count;
    this.set(steps[Math.min(Math.max(index, 0), steps.length - 1)]);
  }

  /** Return to the latest step and stay there. */
  follow(): void {
    this.pause();
    if (!this._following) {
      this._following = true;
      this._step = -1;
      this._changed.emit();
    }
  }

  /** Move through the run from the present step, or from the start when at the end. */
  play(): void {
    if (this.playing || this._steps.length < 2) {
      return;
    }
    const index = this._steps.indexOf(this._nearest(this.step));
    const start = index >= this._steps.length - 1 ? 0 : index;
    this._timer = setInterval(() => this._advance(), this._frameMs);
    this._moveTo(this._steps[start]);
    this._changed.emit();
  }

  /** Stand still. */
  pause(): void {
    if (this._timer !== null) {
      clearInterval(this._timer);
      this._timer = null;
      this._changed.emit();
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    if (this._timer !== null) {
      clearInterval(this._timer);
    }
    Signal.clearData(this);
  }

  private _advance(): void {
    const { _steps: steps } = this;
    const index = steps.indexOf(this._nearest(this.step));
    const stride = Math.max(
      1,
      Math.round((steps.length * this._frameMs) / this._playMs)
    );
    if (index + stride >= steps.length - 1) {
      this._moveTo(this.last);
      this.pause();
    } else {
      this._moveTo(steps[index + stride]);
    }
  }

  private _moveTo(step: number): void {
    if (step < 0 || (!this._following && step === this._step)) {
      return;
    }
    this._following = false;
    this._step = step;
    this._changed.emit();
  }

  /** The step with data nearest to `step`, by bisection. */
  private _nearest(step: number): number {
    const { _steps: steps } = this;
    if (steps.length === 0) {
      return -1;
    }
    let low = 0;
    let high = steps.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] < step) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const before = steps[Math.max(0, low - 1)];
    return step - before < steps[low] - step ? before : steps[low];
  }

  private _changed = new Signal<this, void>(this);
  private _following: boolean;
  private _frameMs: number;
  private _isDisposed = false;
  private _playMs: number;
  private _range: readonly [number, number] | null = null;
  private _rangeChanged = new Signal<this, void>(this);
  private _step = -1;
  private _steps: ReadonlyArray<number> = [];
  private _timer: ReturnType<typeof setInterval> | null = null;
}

/** Statics of the cursor. */
export namespace StepCursor {
  /** How it starts and plays. */
  export interface IOptions {
    /** Whether it follows at first. */
    readonly following?: boolean;
    /** How long playing a whole run takes, ms. */
    readonly playMs?: number;
    /** Time between two pictures while playing, ms. */
    readonly frameMs?: number;
  }
}
