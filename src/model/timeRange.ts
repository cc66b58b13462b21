/**
 * The part of a run's time that its pictures are about.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/** First and last second since the start of the run. */
export type Seconds = readonly [number, number];

/** Shortest range, s: spans are known to the nanosecond, not below. */
const SHORTEST = 1e-6;

/**
 * The range chosen on one picture, which the others of the run show too.
 */
export class TimeRange implements IDisposable {
  /** Emits after the range changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** What was chosen; null for the latest, which moves on with the run. */
  get value(): Seconds | null {
    return this._value;
  }
  set value(value: Seconds | null) {
    const next = value && ordered(value);
    if (next?.[0] !== this._value?.[0] || next?.[1] !== this._value?.[1]) {
      this._value = next;
      this._changed.emit();
    }
  }

  /** Show `factor` times as much around the same middle. */
  widen(factor: number): void {
    if (this._value) {
      const [low, high] = this._value;
      const more = ((high - low) * (factor - 1)) / 2;
      this.value = [Math.max(0, low - more), high + more];
    }
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _value: Seconds | null = null;
}

function ordered([a, b]: Seconds): Seconds {
  const low = Math.min(a, b);
  return [low, Math.max(a, b, low + SHORTEST)];
}
