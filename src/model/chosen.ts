/**
 * The runs chosen in the list, to do one thing with all of them.
 */
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IRunSummary } from '../api/wire';
import type { RunsModel } from './runs';

/** Chosen runs. What the filter hides, or is gone, is not among them: nothing is done to what is not seen. */
export class ChosenRuns {
  constructor(runs: RunsModel) {
    this._runs = runs;
  }

  /** Emits after another set was chosen. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Those chosen, as they follow each other in the list. */
  get all(): ReadonlyArray<IRunSummary> {
    return this._ids.size === 0
      ? []
      : this._runs.visible.filter(run => this._ids.has(run.id));
  }

  /** Whether a run is one of them. */
  has(id: string): boolean {
    return this._ids.has(id);
  }

  /**
   * Choose a run as well, or no longer.
   *
   * @param current - the run that is open: the first one that is chosen joins it
   */
  toggle(id: string, current: string | null): void {
    const ids = new Set(this._ids);
    if (this.all.length === 0 && current !== null && this._isSeen(current)) {
      ids.add(current);
    }
    if (!ids.delete(id)) {
      ids.add(id);
    }
    this._from = id;
    this._set(ids);
  }

  /**
   * Choose a run, and all from where the choice began up to it.
   *
   * @param from - where it begins, if nothing is chosen
   */
  extend(id: string, from: string | null): void {
    if (this.all.length === 0 || !this._isSeen(this._from)) {
      this._from = from;
    }
    const ids = this._runs.visible.map(run => run.id);
    const to = ids.indexOf(id);
    const begin = this._from === null ? -1 : ids.indexOf(this._from);
    const start = begin < 0 ? to : begin;
    this._set(new Set(ids.slice(Math.min(start, to), Math.max(start, to) + 1)));
  }

  /** Choose all that are listed. */
  addAll(): void {
    this._set(new Set(this._runs.visible.map(run => run.id)));
  }

  /** Choose none. */
  clear(): void {
    this._from = null;
    this._set(new Set());
  }

  private _isSeen(id: string | null): boolean {
    return this._runs.visible.some(run => run.id === id);
  }

  private _set(ids: ReadonlySet<string>): void {
    if (ids.size > 0 || this._ids.size > 0) {
      this._ids = ids;
      this._changed.emit();
    }
  }

  private _changed = new Signal<this, void>(this);
  /** Where a stretch of runs begins. */
  private _from: string | null = null;
  private _ids: ReadonlySet<string> = new Set();
  private _runs: RunsModel;
}
