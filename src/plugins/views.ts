/**
 * The views: one panel each, opened from the tree, the palette, a finding or a dashboard.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  IThemeManager,
  Notification,
  WidgetTracker
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { Widget } from '@lumino/widgets';
import { DockPanel } from '@lumino/widgets';

import type { IViewInfo, ViewParams } from '../api/wire';
import { CommandIDs } from '../commands';
import { PlotlyLoader } from '../figure/plotly';
import { logoIcon, popoutIcon, tableIcon } from '../icons';
import { accepts, tensorParam } from '../model/params';
import { PanelRegistry } from '../panels/registry';
import { ViewPanel } from '../panels/view';
import { IPanelRegistry, ITdbgService } from '../tokens';
import { openInLab } from './lab';
import {
  RUNS_ARGS,
  RUN_ARGS,
  attempt,
  panelRun,
  targetData,
  targetRun,
  targetRuns
} from './target';

/** View that shows a tensor when no other is asked for. */
const TENSOR_VIEW = 'histogram';

const plugin: JupyterFrontEndPlugin<IPanelRegistry> = {
  id: 'tdbg-lab:views',
  description: 'Shows the pictures that the server draws of a run.',
  autoStart: true,
  requires: [ITdbgService],
  provides: IPanelRegistry,
  optional: [
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    IThemeManager,
    ILabShell
  ],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    themes: IThemeManager | null,
    labShell: ILabShell | null
  ): IPanelRegistry => {
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const views = new ViewManager({
      app,
      service,
      trans,
      hasTabs: labShell !== null
    });
    addOpenCommands(app, service, trans, views);
    addPanelCommands(app, trans, views);
    views.tabs.currentChanged.connect((_, panel) => {
      if (panel) {
        service.setCurrent(panel.model.run.id);
      }
    }, service);
    themes?.themeChanged.connect(views.refreshTheme, views);
    if (restorer) {
      void restorer.restore(views.tabs, {
        command: CommandIDs.openView,
        args: panel => ({ ...panel.state, id: panel.id, restoring: true }),
        name: panel => panel.id
      });
    }
    if (palette) {
      const category = trans.__('Tensor Debugger');
      palette.addItem({ command: CommandIDs.popOut, category });
      palette.addItem({ command: CommandIDs.savePicture, category });
      palette.addItem({ command: CommandIDs.toggleTable, category });
      const items = new PaletteItems(service, palette, category);
      service.views.changed.connect(items.update, items);
    }
    return views.registry;
  }
};

/** Name of the view that draws several runs. */
const SEVERAL_RUNS = 'runs';

/** Makes panels and finds them again. */
class ViewManager {
  constructor(options: {
    app: JupyterFrontEnd;
    service: ITdbgService;
    trans: TranslationBundle;
    /** Whether the application has room for tabs. */
    hasTabs: boolean;
  }) {
    this._app = options.app;
    this._hasTabs = options.hasTabs;
    this._service = options.service;
    this._trans = options.trans;
    this.registry = new PanelRegistry({
      createView: (run, view, params) => this.create(run.id, view, params)
    });
  }

  /** Makes the tiles of dashboards. */
  readonly registry: PanelRegistry;

  /** Panels in tabs of their own: restored with the layout. */
  readonly tabs = new WidgetTracker<ViewPanel>({ namespace: 'tdbg-view' });

  /** All panels, those within dashboards too. */
  readonly all = new WidgetTracker<ViewPanel>({ namespace: 'tdbg-panel' });

  /** Make a panel, not yet attached. */
  async create(
    run: string,
    view: string,
    params: ViewParams,
    id = `tdbg-view-${UUID.uuid4()}`
  ): Promise<ViewPanel> {
    const service = this._service;
    const panel = new ViewPanel({
      id,
      model: await service.figure(run, view, params),
      service,
      loader: this._loader,
      trans: this._trans
    });
    await this.all.add(panel);
    return panel;
  }

  /** Open a view: in a tab of its own, or in JupyterLab where there are no tabs. */
  async open(
    run: string,
    view: string,
    params: ViewParams,
    id?: string
  ): Promise<void> {
    if (this._hasTabs) {
      await this.addTab(await this.create(run, view, params, id));
    } else {
      openInLab(this._app, { run, open: view, params }, this._trans);
    }
  }

  /** Add a run to the picture of several runs that is there, or to a new one. */
  async drawBeside(run: string, other: string): Promise<void> {
    const others = this.find(run, SEVERAL_RUNS)?.model.params.others;
    const drawn = Array.isArray(others) ? others.map(String) : [];
    const most = await this.mostOthers();
    await this.drawTogether(
      run,
      drawn.includes(other) ? drawn : [...drawn, other].slice(-most)
    );
  }

  /** Draw a run and others over each other, in the picture of several runs that is there, or in a new one. */
  async drawTogether(
    run: string,
    others: ReadonlyArray<string>
  ): Promise<void> {
    const panel = this.find(run, SEVERAL_RUNS);
    if (panel) {
      panel.model.choose({ others });
      this.reveal(panel);
    } else {
      await this.open(run, SEVERAL_RUNS, { others });
    }
  }

  /** How many runs a picture holds besides the one it is of. */
  async mostOthers(): Promise<number> {
    const { params } = await this._service.views.load(SEVERAL_RUNS);
    return params.find(({ name }) => name === 'others')?.maximum ?? Infinity;
  }

  /** Put a panel into a tab of its own. */
  async addTab(panel: ViewPanel): Promise<void> {
    const { shell } = this._app;
    const last = this.tabs.currentWidget;
    shell.add(
      panel,
      'main',
      last
        ? { mode: 'tab-after', ref: last.id }
        : { mode: shell.currentWidget ? 'split-right' : 'tab-after' }
    );
    panel.model.paramsChanged.connect(() => {
      void this.tabs.save(panel);
    }, panel);
    await this.tabs.add(panel);
  }

  /** The panel of this run and view that was used last. */
  find(run: string, view: string): ViewPanel | undefined {
    const fits = (panel: ViewPanel | null): panel is ViewPanel =>
      panel?.model.run.id === run && panel.model.view.name === view;
    const current = this.all.currentWidget;
    return fits(current) ? current : this.all.filter(fits).pop();
  }

  /** Bring a panel to light; the focus stays where it is when it is in sight already. */
  reveal(panel: ViewPanel): void {
    if (panel.isVisible) {
      return;
    }
    let widget: Widget | null = panel;
    while (widget?.parent) {
      if (widget.parent instanceof DockPanel && widget.parent !== null) {
        widget.parent.selectWidget(widget);
      }
      this._app.shell.activateById(widget.id);
      widget = widget.parent;
    }
  }

  /** Draw all again in the present theme. */
  refreshTheme(): void {
    this.all.forEach(panel => panel.refreshTheme());
  }

  private _app: JupyterFrontEnd;
  private _hasTabs: boolean;
  private _loader = new PlotlyLoader();
  private _service: ITdbgService;
  private _trans: TranslationBundle;
}

/** One entry of the palette for each view the server knows. */
class PaletteItems {
  constructor(
    service: ITdbgService,
    palette: ICommandPalette,
    category: string
  ) {
    this._service = service;
    this._palette = palette;
    this._category = category;
  }

  /** Follow the catalogue. */
  update(): void {
    this._items.forEach(item => item.dispose());
    this._items = this._service.views.all.map(view =>
      this._palette.addItem({
        command: CommandIDs.openView,
        category: this._category,
        args: { view: view.name }
      })
    );
  }

  private _category: string;
  private _items: ReadonlyArray<IDisposable> = [];
  private _palette: ICommandPalette;
  private _service: ITdbgService;
}

function addOpenCommands(
  app: JupyterFrontEnd,
  service: ITdbgService,
  trans: TranslationBundle,
  views: ViewManager
): void {
  const { commands } = app;
  const info = (args: ReadonlyPartialJSONObject): IViewInfo | undefined =>
    service.views.get(String(args['view'] ?? ''));
  commands.addCommand(CommandIDs.openView, {
    label: args => {
      const view = info(args);
      return view
        ? trans.__('Open View: %1', view.title)
        : trans.__('Open View');
    },
    caption: args => info(args)?.description ?? '',
    icon: logoIcon,
    describedBy: {
      args: {
        type: 'object',
        required: ['view'],
        properties: {
          ...RUN_ARGS,
          view: { type: 'string', description: 'Name of the view' },
          params: { type: 'object', description: 'Parameters of the view' },
          id: { type: 'string', description: 'Id of the panel' }
        }
      }
    },
    isEnabled: args => targetRun(app, service, args) !== undefined,
    execute: async args => {
      const run = await panelRun(app, service, args);
      if (run === undefined) {
        return;
      }
      await attempt(
        () =>
          views.open(
            run,
            String(args['view']),
            (args['params'] ?? {}) as ViewParams,
            args['id'] === undefined ? undefined : String(args['id'])
          ),
        trans
      );
    }
  });
  const beside = (args: ReadonlyPartialJSONObject): string | undefined => {
    const run = targetRun(app, service, args);
    return run === service.current?.id ? undefined : run;
  };
  commands.addCommand(CommandIDs.drawBeside, {
    label: trans.__('Draw Beside the Current Run'),
    caption: trans.__(
      'Show the losses of both runs, and of others, in a picture'
    ),
    icon: logoIcon,
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    isVisible: args => targetRuns(app, service, args).length < 2,
    isEnabled: args => service.current !== null && beside(args) !== undefined,
    execute: async args => {
      const current = service.current?.id;
      const other = beside(args);
      if (current !== undefined && other !== undefined) {
        await attempt(() => views.drawBeside(current, other), trans);
      }
    }
  });
  commands.addCommand(CommandIDs.compareRuns, {
    label: args =>
      trans.__('Compare %1 Runs', targetRuns(app, service, args).length),
    caption: trans.__('Show the losses of the chosen runs in a picture'),
    icon: logoIcon,
    describedBy: { args: { type: 'object', properties: RUNS_ARGS } },
    isVisible: args => targetRuns(app, service, args).length > 1,
    isEnabled: args => targetRuns(app, service, args).length > 1,
    execute: async args => {
      const ids = targetRuns(app, service, args).map(({ id }) => id);
      const current = service.current?.id ?? '';
      const run = ids.includes(current) ? current : ids[0];
      const others = ids.filter(id => id !== run);
      if (others.length === 0) {
        return;
      }
      await attempt(async () => {
        const most = await views.mostOthers();
        await views.drawTogether(run, others.slice(0, most));
        if (others.length > most) {
          Notification.warning(
            trans.__(
              '%1 of %2 runs are drawn: a picture holds no more.',
              most + 1,
              ids.length
            )
          );
        }
      }, trans);
    }
  });
  commands.addCommand(CommandIDs.showTensor, {
    label: args => {
      const view = info(args);
      return view
        ? trans.__('Show as %1', view.title)
        : args['newPanel']
          ? trans.__('Show Tensor in a New Panel')
          : trans.__('Show Tensor');
    },
    caption: trans.__('Show the tensor in the panel that shows tensors'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...RUN_ARGS,
          tensor: { type: 'string', description: 'Name of the tensor' },
          view: { type: 'string', description: 'Name of the view' },
          newPanel: { type: 'boolean', description: 'Whether to open a panel' }
        }
      }
    },
    execute: args =>
      attempt(async () => {
        const run = targetRun(app, service, args);
        const tensor = args['tensor'] ?? targetData(app, 'tdbgTensor');
        if (run === undefined || typeof tensor !== 'string') {
          return;
        }
        const known = service.open(run).tensors.find(t => t.name === tensor);
        const asked = await service.views.load(
          String(args['view'] ?? TENSOR_VIEW)
        );
        const param = tensorParam(asked);
        // A scalar has no histogram: it is shown among the scalars.
        const fits = !param || !known || accepts(param, known);
        const view = fits ? asked.name : 'scalars';
        const params: ViewParams =
          fits && param ? { [param.name]: tensor } : { tensors: [tensor] };
        const found = args['newPanel'] ? undefined : views.find(run, view);
        if (found) {
          found.model.choose(params);
          views.reveal(found);
        } else {
          await views.open(run, view, params);
        }
      }, trans)
  });
}

function addPanelCommands(
  app: JupyterFrontEnd,
  trans: TranslationBundle,
  views: ViewManager
): void {
  const { commands } = app;
  const describedBy = { args: { type: 'object', properties: {} } };
  const current = (): ViewPanel | null => views.all.currentWidget;
  commands.addCommand(CommandIDs.popOut, {
    label: trans.__('Move View to Its Own Tab'),
    caption: trans.__('Take the view out of the dashboard'),
    icon: popoutIcon,
    describedBy,
    isEnabled: () => {
      const panel = current();
      return panel !== null && !views.tabs.has(panel);
    },
    execute: async () => {
      const panel = current();
      if (panel) {
        await views.addTab(panel);
        app.shell.activateById(panel.id);
      }
    }
  });
  commands.addCommand(CommandIDs.savePicture, {
    label: trans.__('Save View as Picture'),
    caption: trans.__('Save the picture of the view as PNG'),
    describedBy,
    isEnabled: () => current() !== null,
    execute: () => attempt(async () => current()?.download(), trans)
  });
  commands.addCommand(CommandIDs.toggleTable, {
    label: trans.__('Show View as Table'),
    caption: trans.__('Show the numbers of the view in place of the picture'),
    icon: tableIcon,
    describedBy,
    isEnabled: () => current() !== null,
    isToggled: () => current()?.isTable ?? false,
    execute: () => {
      const panel = current();
      if (panel) {
        panel.isTable = !panel.isTable;
        commands.notifyCommandChanged(CommandIDs.toggleTable);
      }
    }
  });
  views.all.currentChanged.connect(() => {
    commands.notifyCommandChanged(CommandIDs.toggleTable);
    commands.notifyCommandChanged(CommandIDs.popOut);
    commands.notifyCommandChanged(CommandIDs.savePicture);
  }, views);
}

export default plugin;
