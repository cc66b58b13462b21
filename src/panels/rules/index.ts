/**
 * The rules of one run, as a widget of the main area.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';
import { Panel } from '@lumino/widgets';

import { rulesIcon } from '../../icons';
import type { RunModel } from '../../model/run';
import type { IPanelRegistry, ITdbgService } from '../../tokens';
import { soleLandmark } from '../barred';
import { isolated, panelTitle, runName } from '../name';
import { RuleDetail } from './detail';
import { EvidencePanel } from './evidence';
import { RulesModel } from './model';
import { RuleRecheck } from './recheck';
import { RulesTable } from './table';

/** The table of rules, and the chosen one: beside it where there is room, else below. */
export class RulesPanel extends MainAreaWidget<Panel> {
  constructor(options: RulesPanel.IOptions) {
    super({ content: new Panel() });
    const { run, service, trans, commands, panels } = options;
    this.run = run;
    this._trans = trans;
    this._hold = run.retain();
    this._model = new RulesModel({ run, service });
    this.id = options.id;
    this.addClass('jp-TdbgRulesPanel');
    this.content.addClass('jp-TdbgRules');
    this.toolbar.hide();
    this.title.closable = true;
    this.title.icon = rulesIcon;
    soleLandmark(this);
    const { _model: model } = this;
    const side = new Panel();
    side.addClass('jp-TdbgRules-side');
    side.addWidget(new RuleDetail({ model, trans, commands }));
    if (!options.isTile) {
      // A tile of a dashboard stands among pictures already.
      side.addWidget(new EvidencePanel({ model, panels }));
    }
    side.addWidget(new RuleRecheck({ model, trans }));
    this.content.addWidget(new RulesTable({ model, trans }));
    this.content.addWidget(side);
    run.changed.connect(this._onChange, this);
    this._onChange();
  }

  /** The run whose rules are shown. */
  readonly run: RunModel;

  /** Whether the title has the name of the run in it. */
  get titleTellsRun(): boolean {
    return this._titleTellsRun;
  }
  set titleTellsRun(value: boolean) {
    this._titleTellsRun = value;
    this._onChange();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.run.changed.disconnect(this._onChange, this);
    super.dispose();
    this._model.dispose();
    this._hold.dispose();
  }

  private _onChange(): void {
    const { run, _trans: trans } = this;
    const label = trans.__('Rules');
    this.title.label = panelTitle(label, run, this._titleTellsRun, trans);
    this.title.caption = trans.__('Rules of %1', isolated(runName(run, trans)));
    this.node.setAttribute('aria-label', this.title.caption);
  }

  private _hold: IDisposable;
  private _model: RulesModel;
  private _titleTellsRun = false;
  private _trans: TranslationBundle;
}

/** Statics of the panel. */
export namespace RulesPanel {
  /** What it needs. */
  export interface IOptions {
    readonly id: string;
    readonly run: RunModel;
    readonly service: ITdbgService;
    readonly commands: CommandRegistry;
    readonly panels: IPanelRegistry;
    readonly trans: TranslationBundle;
    /** Whether it stands in a dashboard. */
    readonly isTile: boolean;
  }
}
