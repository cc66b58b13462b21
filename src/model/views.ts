/**
 * The catalogue of views the server can draw.
 */
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../api/client';
import type { IViewInfo } from '../api/wire';
import { tensorParam } from './params';
import { untilReached } from './retry';

/** How often the server is asked for a view that somebody waits for. */
const MOST_ASKED = 3;

/** What the server can draw; empty until loaded. */
export class ViewCatalogue {
  constructor(client: ITdbgClient) {
    this._client = client;
  }

  /** Emits after the catalogue changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** All views. */
  get all(): ReadonlyArray<IViewInfo> {
    return this._all;
  }

  /** Views of one tensor. */
  get ofTensor(): ReadonlyArray<IViewInfo> {
    return this._all.filter(view => tensorParam(view) !== undefined);
  }

  /** The view called `name`. */
  get(name: string): IViewInfo | undefined {
    return this._all.find(view => view.name === name);
  }

  /** The view called `name`, asking the server when it is not known yet. */
  async load(name: string): Promise<IViewInfo> {
    if (!this.get(name)) {
      // Not for ever: while tabs are restored, all of JupyterLab waits for them.
      await untilReached(() => this.refresh(), MOST_ASKED);
    }
    const view = this.get(name);
    if (!view) {
      throw new Error(`There is no view called ${name}.`);
    }
    return view;
  }

  /** Ask the server until it is reached: what was open comes back only with its views. */
  ask(): Promise<void> {
    this._asking ??= untilReached(() => this.refresh()).finally(() => {
      this._asking = null;
    });
    return this._asking;
  }

  /** Ask the server. */
  async refresh(): Promise<void> {
    const views = await this._client.views();
    if (JSON.stringify(views) !== JSON.stringify(this._all)) {
      this._all = views;
      this._changed.emit();
    }
  }

  private _all: ReadonlyArray<IViewInfo> = [];
  private _asking: Promise<void> | null = null;
  private _changed = new Signal<this, void>(this);
  private _client: ITdbgClient;
}
