/**
 * The rules of one run, as a widget of the main area.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';

import { rulesIcon } from '../../icons';
import type { RunModel } from '../../model/run';
import { RulesBody } from './body';

/** Findings and states. */
export class RulesPanel extends MainAreaWidget<RulesBody> {
  constructor(options: RulesPanel.IOptions) {
    super({ content: new RulesBody(options) });
    const { run, trans } = options;
    this.run = run;
    this._trans = trans;
    this._hold = run.retain();
    this.id = options.id;
    this.addClass('jp-TdbgRulesPanel');
    this.toolbar.hide();
    this.title.closable = true;
    this.title.icon = rulesIcon;
    this.node.setAttribute('role', 'region');
    run.changed.connect(this._onChange, this);
    this._onChange();
  }

  /** The run whose rules are shown. */
  readonly run: RunModel;

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.run.changed.disconnect(this._onChange, this);
    this._hold.dispose();
    super.dispose();
  }

  private _onChange(): void {
    const label = this._trans.__('Rules');
    this.title.label = label;
    this.title.caption = this._trans.__('Rules of %1', this.run.name);
    this.node.setAttribute('aria-label', this.title.caption);
  }

  private _hold: IDisposable;
  private _trans: TranslationBundle;
}

/** Statics of the panel. */
export namespace RulesPanel {
  /** What it needs. */
  export interface IOptions {
    readonly id: string;
    readonly run: RunModel;
    readonly commands: CommandRegistry;
    readonly trans: TranslationBundle;
  }
}
