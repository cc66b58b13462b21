/**
 * All pictures of one run in one tab: a grid that the user may rearrange, below one step cursor.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { DockPanelSvg } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { JSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { DockLayout, Widget } from '@lumino/widgets';

import { dashboardIcon } from '../../icons';
import type { RunModel } from '../../model/run';
import type { IPanelRegistry, IPanelState, ITdbgService } from '../../tokens';
import { BarredPanel } from '../barred';
import { isolated, runName } from '../name';
import type { SharedPlaces } from './layout';
import { defaultTiles, places } from './layout';
import { DashboardToolbar } from './toolbar';

/** A grid of views. */
export class Dashboard extends BarredPanel<DockPanelSvg> {
  constructor(options: Dashboard.IOptions) {
    const { run, service, commands, trans } = options;
    super({
      content: new DockPanelSvg({ mode: 'multiple-document', spacing: 4 }),
      bar: new DashboardToolbar({
        run,
        service,
        commands,
        trans,
        onAdd: tile => void this.addTile(tile)
      }),
      barLabel: trans.__('Run toolbar')
    });
    this.run = run;
    this._service = service;
    this._trans = trans;
    this._panels = options.panels;
    this._hold = run.retain();
    this.id = options.id;
    this.addClass('jp-TdbgDashboard');
    this.content.addClass('jp-TdbgDashboard-dock');
    this.title.closable = true;
    this.title.icon = dashboardIcon;
    this.content.layoutModified.connect(this._onLayout, this);
    run.changed.connect(this._onChange, this);
    this._onChange();
  }

  /** The run it shows. */
  readonly run: RunModel;

  /** Emits after tiles were added, closed or moved. */
  get arranged(): ISignal<this, void> {
    return this._arranged;
  }

  /** Fill it as it was left, or with the default pictures. */
  async fill(saved: JSONObject | null): Promise<void> {
    const waiting = this._wait();
    try {
      const { views } = this._service;
      if (views.all.length === 0) {
        await views.ask();
      }
      if (!saved || !(await this._restore(saved))) {
        this._giveUpMade();
        await this._layDefault();
      }
    } finally {
      waiting.remove();
    }
  }

  /** Add a picture beside the others. */
  async addTile(tile: IPanelState): Promise<void> {
    const widget = await this._make(tile);
    if (!this.isDisposed) {
      this._made.delete(widget);
      this.content.addWidget(widget, { mode: 'split-bottom' });
      this.content.selectWidget(widget);
    }
  }

  /** How it is arranged, as JSON. */
  save(): JSONObject {
    return {
      main: this._saveArea(this.content.saveLayout().main) as JSONObject
    };
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.content.layoutModified.disconnect(this._onLayout, this);
    this.run.changed.disconnect(this._onChange, this);
    this._hold.dispose();
    // A dock panel that is disposed leaves its widgets alone.
    [...this.content.widgets()].forEach(tile => tile.dispose());
    this._giveUpMade();
    super.dispose();
  }

  /** Make a picture, which goes with the dashboard also before it has its place. */
  private async _make(tile: IPanelState): Promise<Widget> {
    const widget = await this._panels.create(this.run, tile);
    this._made.add(widget);
    if (this.isDisposed) {
      this._giveUpMade();
    }
    return widget;
  }

  private _giveUpMade(): void {
    this._made.forEach(widget => widget.dispose());
    this._made.clear();
  }

  /** Say that pictures are on their way, until the answer is removed. */
  private _wait(): HTMLElement {
    const waiting = document.createElement('div');
    waiting.className = 'jp-TdbgDashboard-waiting';
    waiting.setAttribute('role', 'status');
    waiting.setAttribute('aria-label', this._trans.__('Reading the run…'));
    const spinner = document.createElement('div');
    spinner.className = 'jp-TdbgSpinner';
    waiting.append(spinner);
    this.content.node.append(waiting);
    return waiting;
  }

  private async _layDefault(): Promise<void> {
    const { views } = this._service;
    if (this.run.tensors.length === 0) {
      await this.run.read();
    }
    const width = this.node.clientWidth || window.innerWidth - 320;
    const height = this.node.clientHeight || window.innerHeight - 120;
    const rows = defaultTiles(
      name => views.get(name) !== undefined,
      this.run.tensors,
      width
    );
    await this._lay(places(rows, height));
  }

  private async _lay(rows: SharedPlaces): Promise<void> {
    const make = (tiles: ReadonlyArray<IPanelState>): Promise<Widget[]> =>
      Promise.all(tiles.map(tile => this._make(tile)));
    const made = await Promise.all(rows.map(row => Promise.all(row.map(make))));
    if (this.isDisposed) {
      return;
    }
    this._isFilling = true;
    this.content.restoreLayout({
      main: {
        type: 'split-area',
        orientation: 'vertical',
        sizes: made.map(() => 1 / made.length),
        children: made.map(row => ({
          type: 'split-area',
          orientation: 'horizontal',
          sizes: row.map(() => 1 / row.length),
          children: row.map(widgets => ({
            type: 'tab-area',
            widgets,
            currentIndex: 0
          }))
        }))
      }
    });
    this._made.clear();
    this._isFilling = false;
  }

  private async _restore(saved: JSONObject): Promise<boolean> {
    try {
      const main = await this._loadArea(saved['main'] as JSONObject | null);
      if (!main) {
        return false;
      }
      if (this.isDisposed) {
        return true;
      }
      this._isFilling = true;
      this.content.restoreLayout({ main });
      this._made.clear();
      return true;
    } catch (error) {
      console.error('The dashboard could not be restored', error);
      return false;
    } finally {
      this._isFilling = false;
    }
  }

  private _saveArea(area: DockLayout.AreaConfig | null): JSONObject | null {
    if (!area) {
      return null;
    }
    if (area.type === 'tab-area') {
      const tiles = area.widgets
        .map(widget => this._panels.describe(widget))
        .filter((tile): tile is IPanelState => tile !== null);
      return {
        type: 'tab-area',
        currentIndex: area.currentIndex,
        tiles: tiles as unknown as JSONObject[]
      };
    }
    return {
      type: 'split-area',
      orientation: area.orientation,
      sizes: [...area.sizes],
      children: area.children.map(child => this._saveArea(child))
    };
  }

  private async _loadArea(
    area: JSONObject | null
  ): Promise<DockLayout.AreaConfig | null> {
    if (!area) {
      return null;
    }
    if (area['type'] === 'tab-area') {
      const tiles = area['tiles'] as unknown as ReadonlyArray<IPanelState>;
      const made = await Promise.allSettled(
        tiles.map(tile => this._make(tile))
      );
      const widgets = made
        .map(result => (result.status === 'fulfilled' ? result.value : null))
        .filter((widget): widget is Widget => widget !== null);
      return widgets.length > 0
        ? {
            type: 'tab-area',
            widgets,
            currentIndex: Number(area['currentIndex'])
          }
        : null;
    }
    const loaded = await Promise.all(
      (area['children'] as JSONObject[]).map(child => this._loadArea(child))
    );
    const sizes = area['sizes'] as number[];
    const kept = loaded
      .map((child, i) => ({ child, size: sizes[i] ?? 1 }))
      .filter(({ child }) => child !== null);
    return kept.length > 0
      ? {
          type: 'split-area',
          orientation:
            area['orientation'] === 'vertical' ? 'vertical' : 'horizontal',
          sizes: kept.map(({ size }) => size),
          children: kept.map(({ child }) => child as DockLayout.AreaConfig)
        }
      : null;
  }

  private _onLayout(): void {
    if (!this._isFilling) {
      this._arranged.emit();
    }
  }

  private _onChange(): void {
    const name = isolated(runName(this.run, this._trans));
    this.title.label = name;
    this.title.caption = this._trans.__('Dashboard of %1', name);
    this.node.setAttribute('aria-label', this.title.caption);
  }

  private _arranged = new Signal<this, void>(this);
  private _hold: IDisposable;
  private _isFilling = false;
  /** Pictures that have no place yet. */
  private _made = new Set<Widget>();
  private _panels: IPanelRegistry;
  private _service: ITdbgService;
  private _trans: TranslationBundle;
}

/** Statics of the dashboard. */
export namespace Dashboard {
  /** What it needs. */
  export interface IOptions {
    readonly id: string;
    readonly run: RunModel;
    readonly service: ITdbgService;
    readonly commands: CommandRegistry;
    readonly trans: TranslationBundle;
    /** Makes the tiles. */
    readonly panels: IPanelRegistry;
  }
}
