/**
 * The other runs in a picture: kept up to date while somebody looks.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IViewInfo, ViewParams } from '../api/wire';
import { takesRuns } from './params';
import type { RunModel } from './run';

/** The runs that stand in the parameters of a view. */
export class RunsBeside implements IDisposable {
  constructor(options: RunsBeside.IOptions) {
    this._names = options.view.params.filter(takesRuns).map(({ name }) => name);
    this._open = options.open;
  }

  /** Emits after one of them grew. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Follow the runs that `params` name, or none while nobody looks. */
  follow(params: ViewParams, isActive: boolean): void {
    const wanted = new Set<string>();
    for (const name of isActive && !this._isDisposed ? this._names : []) {
      const value = params[name];
      for (const id of Array.isArray(value) ? value : [value]) {
        if (typeof id === 'string' && id) {
          wanted.add(id);
        }
      }
    }
    for (const [id, held] of this._held) {
      if (!wanted.has(id)) {
        held.run.versionChanged.disconnect(this._onVersion, this);
        held.hold.dispose();
        this._held.delete(id);
      }
    }
    for (const id of wanted) {
      if (!this._held.has(id)) {
        const run = this._open(id);
        run.versionChanged.connect(this._onVersion, this);
        this._held.set(id, { run, hold: run.retain() });
      }
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this.follow({}, false);
    Signal.clearData(this);
  }

  private _onVersion(): void {
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _held = new Map<string, { run: RunModel; hold: IDisposable }>();
  private _isDisposed = false;
  private _names: ReadonlyArray<string>;
  private _open: (id: string) => RunModel;
}

/** Statics of the runs beside. */
export namespace RunsBeside {
  /** What they need. */
  export interface IOptions {
    /** The view that draws them. */
    readonly view: IViewInfo;
    /** Gives a run by its id. */
    readonly open: (id: string) => RunModel;
  }
}
