/**
 * One view of one run, as a widget of the main area.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { Panel } from '@lumino/widgets';

import type { ViewParams } from '../../api/wire';
import type { PlotlyLoader } from '../../figure/plotly';
import { FigureWidget } from '../../figure/widget';
import { logoIcon } from '../../icons';
import type { FigureModel } from '../../model/figure';
import { tensorParam } from '../../model/params';
import type { RunModel } from '../../model/run';
import type { ITdbgService } from '../../tokens';
import { BarredPanel } from '../barred';
import { isolated, panelTitle, runName } from '../name';
import type { IViewFootProps } from './foot';
import { ViewFoot, ViewOverlay, outdated } from './foot';
import { ViewTable } from './table';
import { ViewToolbar } from './toolbar';

/** Toolbar, picture and foot. It owns the model it is given. */
export class ViewPanel extends BarredPanel<Panel> {
  constructor(options: ViewPanel.IOptions) {
    const { model, service, trans } = options;
    const tableChanged = new Signal<unknown, void>({});
    super({
      content: new Panel(),
      bar: new ViewToolbar({
        model,
        runs: service.runs,
        trans,
        tableChanged,
        isTable: () => this.isTable,
        onTable: () => {
          this.isTable = !this.isTable;
        }
      }),
      barLabel: trans.__('Parameters of the view')
    });
    this.model = model;
    this._tableChanged = tableChanged;
    this._service = service;
    this._trans = trans;
    this._hold = model.run.retain();
    this.id = options.id;
    this.addClass('jp-TdbgView');
    this.title.closable = true;
    this.title.icon = logoIcon;
    this._figure = new FigureWidget({
      model,
      loader: options.loader,
      settings: service.settings
    });
    this.content.addClass('jp-TdbgView-content');
    this.content.addWidget(this._figure);
    this.content.addWidget(new ViewOverlay({ model, service, trans }));
    this.content.addWidget(new ViewFoot({ model, service, trans }));
    model.paramsChanged.connect(this._onChange, this);
    model.changed.connect(this._onChange, this);
    model.run.changed.connect(this._onChange, this);
    service.connection.changed.connect(this._onChange, this);
    this._onChange();
  }

  /** The picture. */
  readonly model: FigureModel;

  /** The run it is of. */
  get run(): RunModel {
    return this.model.run;
  }

  /** Whether the title has the name of the run in it. */
  get titleTellsRun(): boolean {
    return this._titleTellsRun;
  }
  set titleTellsRun(value: boolean) {
    this._titleTellsRun = value;
    this._onChange();
  }

  /** What restores this widget. */
  get state(): ViewPanel.IState {
    return {
      run: this.model.run.id,
      view: this.model.view.name,
      params: this.model.chosen
    };
  }

  /** Whether the numbers are shown in place of the picture. */
  get isTable(): boolean {
    return this._table !== null;
  }
  set isTable(value: boolean) {
    if (value === this.isTable) {
      return;
    }
    this._table?.dispose();
    this._table = null;
    if (value) {
      const { model } = this;
      this._table = new ViewTable({ model, trans: this._trans });
      this.content.insertWidget(1, this._table);
    }
    this.toggleClass('jp-mod-table', value);
    this._tableChanged.emit();
  }

  /** Draw again in the present theme. */
  refreshTheme(): void {
    this._figure.refreshTheme();
  }

  /** Save the picture as a file. */
  download(): Promise<void> {
    return this._figure.download(
      `${this.model.run.name}-${this.model.view.name}`
    );
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._service.connection.changed.disconnect(this._onChange, this);
    this.model.run.changed.disconnect(this._onChange, this);
    super.dispose();
    this._hold.dispose();
    this.model.dispose();
  }

  /** Title, and whether the picture is out of date. */
  private _onChange(): void {
    const { model, run, title, _trans: trans } = this;
    const tensor = tensorParam(model.view);
    const name = tensor && (model.params[tensor.name] ?? model.meta.tensor);
    const label = name
      ? trans.__('%1: %2', model.view.title, String(name))
      : model.view.title;
    title.label = panelTitle(label, run, this._titleTellsRun, trans);
    title.caption = trans.__(
      '%1 of %2\n%3',
      label,
      isolated(runName(run, trans)),
      model.view.description
    );
    this.node.setAttribute('aria-label', title.label);
    const props: IViewFootProps = {
      model,
      service: this._service,
      trans
    };
    this.toggleClass('jp-mod-stale', outdated(props));
    this.toggleClass('jp-mod-missing', run.state === 'missing');
  }

  private _figure: FigureWidget;
  private _hold: IDisposable;
  private _service: ITdbgService;
  private _table: ViewTable | null = null;
  private _tableChanged: Signal<unknown, void>;
  private _titleTellsRun = false;
  private _trans: TranslationBundle;
}

/** Statics of the panel. */
export namespace ViewPanel {
  /** What it needs. */
  export interface IOptions {
    readonly id: string;
    readonly model: FigureModel;
    readonly service: ITdbgService;
    readonly loader: PlotlyLoader;
    readonly trans: TranslationBundle;
  }

  /** What restores it. */
  export interface IState {
    readonly run: string;
    readonly view: string;
    readonly params: ViewParams;
  }
}
