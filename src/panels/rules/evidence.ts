/**
 * The picture of the chosen finding.
 */
import type { Widget } from '@lumino/widgets';
import { Panel } from '@lumino/widgets';

import type { IPanelRegistry } from '../../tokens';
import type { RulesModel } from './model';

/** Holds the view of the finding, and another one when another finding is chosen. */
export class EvidencePanel extends Panel {
  constructor(options: EvidencePanel.IOptions) {
    super();
    this.addClass('jp-TdbgRules-evidence');
    this._model = options.model;
    this._panels = options.panels;
    this._model.changed.connect(this._onChange, this);
    this._onChange();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._model.changed.disconnect(this._onChange, this);
    super.dispose();
  }

  private _onChange(): void {
    const { finding } = this._model;
    const view = finding?.view ?? null;
    const wanted = JSON.stringify(view);
    if (wanted === this._shown) {
      return;
    }
    this._shown = wanted;
    this._figure?.dispose();
    this._figure = null;
    this.setHidden(view === null);
    if (view) {
      void this._show(wanted, { view: view.name, params: view.params });
    }
  }

  private async _show(
    wanted: string,
    state: Parameters<IPanelRegistry['create']>[1]
  ): Promise<void> {
    let figure: Widget;
    try {
      figure = await this._panels.create(this._model.run, state);
    } catch {
      this.hide(); // A view of a package that this server does not have.
      return;
    }
    if (this.isDisposed || this._shown !== wanted) {
      figure.dispose();
      return;
    }
    this._figure = figure;
    this.addWidget(figure);
  }

  private _figure: Widget | null = null;
  private _model: RulesModel;
  private _panels: IPanelRegistry;
  /** The picture shown, as JSON; null before the first look. */
  private _shown: string | null = null;
}

/** Statics of the panel. */
export namespace EvidencePanel {
  /** What it needs. */
  export interface IOptions {
    readonly model: RulesModel;
    readonly panels: IPanelRegistry;
  }
}
