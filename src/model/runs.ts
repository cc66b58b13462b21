/**
 * The list of runs, and the part of it that passes the filter.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IRunList, IRunSummary } from '../api/wire';
import { toNumber } from '../api/wire';
import { whereabouts } from './whereabouts';

/** How the list is sorted. */
export type RunOrder = 'newest' | 'name' | 'loss';

/** The last value of the loss that a run is known by; NaN if there is none. */
export function lastLoss({ loss }: IRunSummary): number {
  return loss && loss.length > 0 ? toNumber(loss[loss.length - 1][1]) : NaN;
}

/** All runs under the roots. */
export class RunsModel implements IDisposable {
  /** Emits after the list, the filter, the order or the run being renamed changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether a list has arrived. */
  get isLoaded(): boolean {
    return this._isLoaded;
  }

  /** All runs: running ones first, then the youngest first. */
  get all(): ReadonlyArray<IRunSummary> {
    return this._all;
  }

  /** Those that pass the filter, in the order that was chosen. */
  get visible(): ReadonlyArray<IRunSummary> {
    return this._visible;
  }

  /** Words that a run must contain in name, path, tags, notes or state. */
  get filter(): string {
    return this._filter;
  }
  set filter(value: string) {
    if (value !== this._filter) {
      this._filter = value;
      this._update();
    }
  }

  /** How those are sorted that pass the filter. */
  get order(): RunOrder {
    return this._order;
  }
  set order(value: RunOrder) {
    if (value !== this._order) {
      this._order = value;
      this._update();
    }
  }

  /** Id of the run whose name is being edited. */
  get renaming(): string | null {
    return this._renaming;
  }
  set renaming(id: string | null) {
    if (id !== this._renaming) {
      this._renaming = id;
      if (id !== null && !this._visible.some(run => run.id === id)) {
        this.filter = '';
      }
      this._changed.emit();
    }
  }

  /** The run with this id. */
  get(id: string): IRunSummary | undefined {
    return this._byId.get(id);
  }

  /** Where the run lies, if others have its name; else empty. */
  where(id: string): string {
    return this._where.get(id) ?? '';
  }

  /** Whether the server has more runs or folders than it looks at: some runs may be missing. */
  get isTruncated(): boolean {
    return this._isTruncated;
  }

  /** Names of the run roots that the server cannot read at the moment. */
  get unread(): ReadonlyArray<string> {
    return this._unread;
  }

  /** Replace the list, and what is said of it. */
  setAll(runs: ReadonlyArray<IRunSummary>, said: Partial<IRunList> = {}): void {
    this._isLoaded = true;
    this._isTruncated = said.truncated ?? false;
    this._unread = said.unread ?? [];
    this._byId = new Map(runs.map(run => [run.id, run]));
    this._update();
  }

  /** Replace or add one run. */
  put(run: IRunSummary): void {
    this._byId.set(run.id, run);
    this._update();
  }

  /** Take one run from the list. */
  remove(id: string): void {
    if (this._byId.delete(id)) {
      this._update();
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _update(): void {
    this._all = [...this._byId.values()].sort(
      (a, b) =>
        Number(b.status === 'running') - Number(a.status === 'running') ||
        b.created_ns - a.created_ns ||
        a.path.localeCompare(b.path)
    );
    this._where = whereabouts(this._all);
    const words = this._filter.toLowerCase().split(/\s+/).filter(Boolean);
    const found =
      words.length === 0
        ? this._all
        : this._all.filter(run => {
            const text = [
              run.name,
              run.path,
              run.status,
              run.status === 'running' ? 'live' : '', // as the list calls it
              run.framework,
              run.notes,
              ...run.tags
            ]
              .join(' ')
              .toLowerCase();
            return words.every(word => text.includes(word));
          });
    this._visible = sorted(found, this._order);
    this._changed.emit();
  }

  private _all: ReadonlyArray<IRunSummary> = [];
  private _byId = new Map<string, IRunSummary>();
  private _changed = new Signal<this, void>(this);
  private _filter = '';
  private _isDisposed = false;
  private _isLoaded = false;
  private _isTruncated = false;
  private _order: RunOrder = 'newest';
  private _renaming: string | null = null;
  private _unread: ReadonlyArray<string> = [];
  private _visible: ReadonlyArray<IRunSummary> = [];
  private _where: ReadonlyMap<string, string> = new Map();
}

/** Runs in another order than the newest first; those without a loss, or with one that is no number, come last. */
function sorted(
  runs: ReadonlyArray<IRunSummary>,
  order: RunOrder
): ReadonlyArray<IRunSummary> {
  switch (order) {
    case 'newest':
      return runs;
    case 'name':
      return [...runs].sort((a, b) =>
        a.name.localeCompare(b.name, undefined, { numeric: true })
      );
    case 'loss':
      return [...runs].sort((a, b) => {
        const [one, other] = [lastLoss(a), lastLoss(b)];
        return Number.isNaN(one) || Number.isNaN(other)
          ? Number(Number.isNaN(one)) - Number(Number.isNaN(other))
          : one - other || 0;
      });
  }
}
