/**
 * The kinds of panels a dashboard can be built of.
 */
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import type { Widget } from '@lumino/widgets';

import type { ViewParams } from '../api/wire';
import type { RunModel } from '../model/run';
import type { IPanelFactory, IPanelRegistry, IPanelState } from '../tokens';

/** See `IPanelRegistry`. */
export class PanelRegistry implements IPanelRegistry {
  constructor(options: PanelRegistry.IOptions) {
    this._createView = options.createView;
  }

  add(factory: IPanelFactory): IDisposable {
    this._factories.set(factory.name, factory);
    return new DisposableDelegate(() => {
      if (this._factories.get(factory.name) === factory) {
        this._factories.delete(factory.name);
      }
    });
  }

  async create(run: RunModel, state: IPanelState): Promise<Widget> {
    const factory = this._factories.get(state.view);
    const widget = factory
      ? await factory.create(run, state.params)
      : await this._createView(run, state.view, state.params);
    this._made.set(widget, state);
    return widget;
  }

  describe(widget: Widget): IPanelState | null {
    const made = this._made.get(widget);
    return made ? { ...made, ...Private.ownState(widget) } : null;
  }

  private _createView: PanelRegistry.IOptions['createView'];
  private _factories = new Map<string, IPanelFactory>();
  private _made = new WeakMap<Widget, IPanelState>();
}

/** Statics of the registry. */
export namespace PanelRegistry {
  /** What it needs. */
  export interface IOptions {
    /** Make the panel of a view of the server. */
    readonly createView: (
      run: RunModel,
      view: string,
      params: ViewParams
    ) => Promise<Widget>;
  }
}

namespace Private {
  /** The present state, of widgets that tell one. */
  export function ownState(widget: Widget): Partial<IPanelState> {
    const { state } = widget as Widget & { state?: Partial<IPanelState> };
    return state ? { params: state.params ?? {} } : {};
  }
}
