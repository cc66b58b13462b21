/**
 * The one object behind all panels: keeps the list of runs, the opened runs and the connection
 * up to date, from the socket where there is one and by looking from time to time where not.
 */
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ITdbgClient } from '../api/client';
import { httpStatus } from '../api/client';
import type { IRunStream } from '../api/stream';
import type {
  IFinding,
  IRunEdit,
  IRunSummary,
  StreamMessage,
  ViewParams
} from '../api/wire';
import type { IFindingEvent, ITdbgService } from '../tokens';
import { ChosenRuns } from './chosen';
import { ConnectionModel } from './connection';
import { FigureModel } from './figure';
import { MachineModel } from './machine';
import { DrawPace } from './pace';
import { Refresher } from './refresher';
import { RunModel } from './run';
import { RunsModel } from './runs';
import { TdbgSettings } from './settings';
import { ViewCatalogue } from './views';

/** Longest list of findings remembered as announced. */
const MAX_ANNOUNCED = 10_000;
/** From so many on, runs that are gone and shown nowhere are let go. */
const MAX_OPENED = 200;

/** See `ITdbgService`. */
export class TdbgService implements ITdbgService {
  constructor(options: TdbgService.IOptions) {
    this.client = options.client;
    this._stream = options.stream;
    this.machine = new MachineModel(options.stream);
    this.views = new ViewCatalogue(options.client);
    this._list = new Refresher(() => this._fetchList(), options.listMs ?? 700);
    this._poll = new Poll({
      auto: false,
      factory: () => this._look(),
      frequency: {
        interval: options.pollMs ?? 5000,
        backoff: true,
        max: 15_000
      },
      name: 'tdbg-lab:service',
      standby: options.standby ?? 'when-hidden'
    });
    this._stream.stateChanged.connect(this._onStreamState, this);
    this._stream.message.connect(this._onMessage, this);
    this.settings.changed.connect(this._onSettings, this);
    this.runs.changed.connect(this._onRuns, this);
  }

  readonly client: ITdbgClient;
  readonly connection = new ConnectionModel();
  readonly machine: MachineModel;
  readonly runs = new RunsModel();
  readonly chosen = new ChosenRuns(this.runs);
  readonly settings = new TdbgSettings();
  readonly views: ViewCatalogue;

  get current(): RunModel | null {
    return this._current;
  }

  get currentChanged(): ISignal<this, RunModel | null> {
    return this._currentChanged;
  }

  get findingAdded(): ISignal<this, IFindingEvent> {
    return this._findingAdded;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  start(): void {
    void this._poll.start();
  }

  setCurrent(id: string | null): void {
    if ((this._current?.id ?? null) === id) {
      return;
    }
    const old = this._currentHold;
    this._current = id === null ? null : this.open(id);
    this._currentHold = this._current?.retain() ?? null;
    old?.dispose();
    this._currentChanged.emit(this._current);
  }

  open(id: string): RunModel {
    let run = this._opened.get(id);
    if (!run) {
      run = new RunModel({
        id,
        client: this.client,
        follow: this.settings.follow
      });
      const summary = this.runs.get(id);
      if (summary) {
        run.setSummary(summary);
      }
      run.where = this.runs.where(id);
      run.retainedChanged.connect(this._watch, this);
      this._makeRoom();
      this._opened.set(id, run);
      if (this.runs.isLoaded && !summary) {
        // To ask for it would be answered "not found"; the list tells when it is there.
        run.setMissing();
      }
    }
    return run;
  }

  async isGone(id: string): Promise<boolean> {
    // One question for all restored panels; to ask for a run that is gone is an error in the browser's console.
    this._asked ??= this._fetchList().finally(() => {
      this._asked = null;
    });
    return this._asked.then(
      // A folder that is not mounted may bring it back, too.
      () => this.runs.unread.length === 0 && !this.runs.get(id),
      // Without the extension there is no run either, and every one may come back with it.
      () => false
    );
  }

  async figure(
    runId: string,
    view: string,
    params: ViewParams
  ): Promise<FigureModel> {
    const info = await this.views.load(view);
    const model = new FigureModel({
      run: this.open(runId),
      view: info,
      client: this.client,
      settings: this.settings,
      pace: this._pace,
      open: id => this.open(id),
      params
    });
    this._figures = new Set(
      [...this._figures].filter(figure => !figure.isDisposed)
    ).add(model);
    return model;
  }

  async edit(id: string, edit: IRunEdit): Promise<void> {
    this._put(await this.client.edit(id, edit));
    await this._opened.get(id)?.refresh();
  }

  async remove(id: string): Promise<void> {
    await this.client.remove(id);
    this._forget(id);
    if (this._current?.id === id) {
      this.setCurrent(null);
    }
  }

  async stop(id: string, reason: string): Promise<void> {
    await this.client.stop(id, reason);
  }

  async refresh(): Promise<void> {
    this._lastLook = 0;
    await this._poll.refresh();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._poll.dispose();
    this._list.dispose();
    this._stream.dispose();
    this._currentHold?.dispose();
    for (const run of this._opened.values()) {
      run.dispose();
    }
    this.machine.dispose();
    this.runs.dispose();
    this.settings.dispose();
    Signal.clearData(this.chosen);
    Signal.clearData(this.connection);
    Signal.clearData(this.views);
    Signal.clearData(this);
  }

  /** The factory of the poll: everything when there is no socket, a rare check when there is. */
  private async _look(): Promise<void> {
    const live = this._stream.state === 'open';
    if (live && Date.now() - this._lastLook < 60_000) {
      return;
    }
    try {
      if (!this._isKnown) {
        await this.client.status();
        this._isKnown = true;
        this._stream.start();
        this.views.ask().catch(this._onBackground);
      }
      await this._fetchList();
      if (!live) {
        await this._refreshOpened();
        this._stream.reconnect();
      }
      this._lastLook = Date.now();
    } catch (error) {
      const status = httpStatus(error);
      if (!this._isKnown && status === 404) {
        this.connection.set('missing');
      } else {
        const isDenied = status === 401 || status === 403;
        this.connection.set(isDenied ? 'denied' : 'offline');
      }
      throw error;
    }
    this._updateConnection();
  }

  private async _fetchList(): Promise<void> {
    const list = await this.client.runs();
    if (this.isDisposed) {
      return;
    }
    this.connection.heard();
    this.runs.setAll(list.runs, list);
    for (const [id, run] of this._opened) {
      const summary = this.runs.get(id);
      if (summary) {
        run.setSummary(summary);
      } else if (run.state !== 'missing') {
        run.setMissing();
      }
    }
    this._watch();
  }

  private async _refreshOpened(): Promise<void> {
    const shown = [...this._opened.values()].filter(run => run.isRetained);
    await Promise.all(shown.map(run => run.refresh()));
  }

  private _updateConnection(): void {
    if (this._stream.state === 'open') {
      this.connection.set('live');
    } else if (this.connection.since === null) {
      this.connection.set('connecting');
    } else {
      // The first seconds of a socket being opened are no reason to worry anybody.
      const fresh = this._stream.state === 'connecting' && !this._hadSocket;
      this.connection.set(fresh ? 'connecting' : 'stale');
    }
  }

  private _onStreamState(): void {
    if (this._stream.state === 'open') {
      const again = this._hadSocket;
      this._hadSocket = true;
      this.connection.heard();
      if (again) {
        // What was missed meanwhile.
        this._list.invoke().catch(this._onBackground);
        void this._refreshOpened();
        for (const figure of this._figures) {
          figure.invalidate();
        }
        this.views.refresh().catch(this._onBackground);
      }
    } else if (this._stream.state === 'closed') {
      this._lastLook = 0;
      this._poll.refresh().catch(this._onBackground);
    }
    this._updateConnection();
  }

  private _onMessage(_: IRunStream, message: StreamMessage): void {
    this.connection.heard();
    switch (message.type) {
      case 'run': {
        this._put(message.summary);
        this._opened.get(message.summary.id)?.setVersion(message.version);
        break;
      }
      case 'runs':
        this._list.invoke().catch(this._onBackground);
        break;
      case 'removed':
        this._forget(message.id);
        break;
      case 'job':
        for (const figure of this._figures) {
          figure.handleMessage(message);
        }
        break;
      case 'finding':
        this._announce(message.run, message.finding);
        break;
      case 'host':
        this.machine.put(message);
        break;
      case 'pong':
        break;
    }
  }

  private _put(summary: IRunSummary): void {
    this.runs.put(summary);
    this._opened.get(summary.id)?.setSummary(summary);
  }

  private _forget(id: string): void {
    this.runs.remove(id);
    this._opened.get(id)?.setMissing();
    this._watch();
  }

  private _announce(run: string, finding: IFinding): void {
    // The same trouble is told again when it has become worse.
    const key = `${run}/${finding.severity}/${finding.id || finding.message}`;
    if (this._announced.has(key)) {
      return;
    }
    if (this._announced.size >= MAX_ANNOUNCED) {
      this._announced.clear();
    }
    this._announced.add(key);
    this._findingAdded.emit({ run, finding });
  }

  /** A page may be open for weeks: runs that are gone and shown nowhere are not kept for ever. */
  private _makeRoom(): void {
    if (this._opened.size < MAX_OPENED) {
      return;
    }
    for (const [id, run] of this._opened) {
      if (run.state === 'missing' && !run.isRetained) {
        this._opened.delete(id);
      }
    }
  }

  private _watch(): void {
    const watched = [...this._opened.values()]
      .filter(run => run.isRetained && run.state !== 'missing')
      .map(run => run.id);
    if (watched.join() !== this._watched) {
      this._watched = watched.join();
      this._stream.watch(watched);
    }
  }

  /** A run that came, or has another name now, may be called as others are. */
  private _onRuns(): void {
    for (const [id, run] of this._opened) {
      run.where = this.runs.where(id);
    }
  }

  private _onSettings(): void {
    this._poll.frequency = {
      ...this._poll.frequency,
      interval: this.settings.pollSeconds * 1000
    };
  }

  /** A question nobody waits for failed: the connection state says so already. */
  private _onBackground = (): void => undefined;

  private _asked: Promise<void> | null = null;
  private _announced = new Set<string>();
  private _current: RunModel | null = null;
  private _currentChanged = new Signal<this, RunModel | null>(this);
  private _currentHold: { dispose(): void } | null = null;
  private _figures = new Set<FigureModel>();
  private _findingAdded = new Signal<this, IFindingEvent>(this);
  private _hadSocket = false;
  private _isKnown = false;
  private _lastLook = 0;
  private _list: Refresher;
  private _opened = new Map<string, RunModel>();
  private _pace = new DrawPace();
  private _poll: Poll;
  private _stream: IRunStream;
  /** Ids of the runs whose news were asked for. */
  private _watched = '';
}

/** Statics of the service. */
export namespace TdbgService {
  /** What it needs. */
  export interface IOptions {
    /** Where to ask. */
    readonly client: ITdbgClient;
    /** Where to listen. */
    readonly stream: IRunStream;
    /** Time between two looks while there is no socket, ms. */
    readonly pollMs?: number;
    /** How long changes of the list are gathered, ms. */
    readonly listMs?: number;
    /** When not to look. */
    readonly standby?: Poll.Standby;
  }
}
