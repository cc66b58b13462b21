/**
 * What other extensions, and our own plugins, may ask the application for.
 */
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

import type { ITdbgClient } from './api/client';
import type { IFinding, IRunEdit, ViewParams } from './api/wire';
import type { ChosenRuns } from './model/chosen';
import type { ConnectionModel } from './model/connection';
import type { FigureModel } from './model/figure';
import type { MachineModel } from './model/machine';
import type { RunModel } from './model/run';
import type { RunsModel } from './model/runs';
import type { TdbgSettings } from './model/settings';
import type { ViewCatalogue } from './model/views';

/** A finding, and the run it was made on. */
export interface IFindingEvent {
  /** Id of the run. */
  readonly run: string;
  readonly finding: IFinding;
}

/** The runs of the server and everything known of them. */
export interface ITdbgService extends IDisposable {
  /** The REST client. */
  readonly client: ITdbgClient;
  /** Whether what is shown is live. */
  readonly connection: ConnectionModel;
  /** How busy the server's machine is. */
  readonly machine: MachineModel;
  /** All runs. */
  readonly runs: RunsModel;
  /** Those chosen in the list, to do one thing with all of them. */
  readonly chosen: ChosenRuns;
  /** The user's settings. */
  readonly settings: TdbgSettings;
  /** What the server can draw. */
  readonly views: ViewCatalogue;
  /** The run opened in the side bar. */
  readonly current: RunModel | null;
  /** Emits after `current` changed. */
  readonly currentChanged: ISignal<ITdbgService, RunModel | null>;
  /** Emits each new finding once. */
  readonly findingAdded: ISignal<ITdbgService, IFindingEvent>;
  /** Begin to talk to the server; once. */
  start(): void;
  /** Open a run in the side bar, or none. */
  setCurrent(id: string | null): void;
  /** The model of a run; retain it to keep it up to date. */
  open(id: string): RunModel;
  /** Whether the server says that there is no such run; one that does not answer may have it. */
  isGone(id: string): Promise<boolean>;
  /** A picture; whoever asks disposes it. */
  figure(run: string, view: string, params: ViewParams): Promise<FigureModel>;
  /** Change name, tags or notes of a run. */
  edit(id: string, edit: IRunEdit): Promise<void>;
  /** Delete a run from the disk; then it is no longer the current one. */
  remove(id: string): Promise<void>;
  /** Ask the training process to stop. */
  stop(id: string, reason: string): Promise<void>;
  /** Look at everything now. */
  refresh(): Promise<void>;
}

/** The service token. */
export const ITdbgService = new Token<ITdbgService>(
  'tdbg-lab:ITdbgService',
  'The runs of the Tensor Debugger and everything known of them. Require it to show or steer runs.'
);

/** A panel as it can be saved: what it shows, and how. */
export interface IPanelState {
  /** Name of a view of the server, or of a panel somebody added. */
  readonly view: string;
  readonly params: ViewParams;
}

/** Makes the panels called `name`. */
export interface IPanelFactory {
  readonly name: string;
  /** Make one for a run. */
  create(run: RunModel, params: ViewParams): Promise<Widget>;
}

/** Makes the panels that dashboards are built of. */
export interface IPanelRegistry {
  /** Offer a further kind of panel, until the answer is disposed. */
  add(factory: IPanelFactory): IDisposable;
  /** Make a panel; what nobody added is a view of the server. */
  create(run: RunModel, state: IPanelState): Promise<Widget>;
  /** What `widget` shows, if it was made here. */
  describe(widget: Widget): IPanelState | null;
}

/** The panel registry token. */
export const IPanelRegistry = new Token<IPanelRegistry>(
  'tdbg-lab:IPanelRegistry',
  'Makes the panels of the Tensor Debugger. Require it to offer a panel of your own in its dashboards.'
);
