/**
 * What the rules panel shows of a run: the chosen rule and finding, and what is known of rules.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IFinding, IRuleInfo } from '../../api/wire';
import { humanize } from '../../model/params';
import { RecheckModel } from '../../model/recheck';
import type { IRuleRow } from '../../model/rules';
import { ruleRows } from '../../model/rules';
import type { RunModel } from '../../model/run';
import type { ITdbgService } from '../../tokens';

/** State of one panel. */
export class RulesModel implements IDisposable {
  constructor(options: RulesModel.IOptions) {
    this.run = options.run;
    this.service = options.service;
    this.run.rulesChanged.connect(this._onRules, this);
    this._onRules();
    this._asking = new Poll({
      factory: () => this._load(),
      frequency: { interval: 1000, backoff: true, max: 15_000 },
      name: 'tdbg-lab:rule-catalogue',
      standby: 'when-hidden'
    });
  }

  readonly run: RunModel;
  readonly service: ITdbgService;

  /** Emits after anything shown changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** All rules, those in trouble first. */
  get rows(): ReadonlyArray<IRuleRow> {
    return this._rows;
  }

  /** The rule looked at: the chosen one, else the first in trouble. */
  get row(): IRuleRow | null {
    return (
      this._rows.find(row => row.rule === this._rule) ??
      this._rows.find(row => row.findings.length > 0) ??
      null
    );
  }

  /** The finding looked at: the chosen one, else the worst of the rule. */
  get finding(): IFinding | null {
    const findings = this.row?.findings ?? [];
    return (
      findings.find(({ id }) => id === this._finding) ?? findings[0] ?? null
    );
  }

  /** The check with other thresholds of the chosen rule. */
  get recheck(): RecheckModel {
    const rule = this.row?.rule ?? '';
    let model = this._rechecks.get(rule);
    if (!model) {
      model = new RecheckModel({
        client: this.service.client,
        run: this.run.id
      });
      this._rechecks.set(rule, model);
    }
    return model;
  }

  /** Whether the server has told the rules it knows. */
  get isCatalogueKnown(): boolean {
    return this._catalogue.length > 0;
  }

  /** What the server says about a rule, if it knows it. */
  info(rule: string): IRuleInfo | undefined {
    return this._catalogue.find(({ name }) => name === rule);
  }

  /** What a rule is called. */
  title(rule: string): string {
    return this.info(rule)?.title ?? humanize(rule);
  }

  /** Look at a rule, and at one of its findings. */
  choose(rule: string, finding = ''): void {
    this._rule = rule;
    this._finding = finding;
    this._changed.emit();
  }

  /** Mute a rule of the run, or hear it again. */
  async mute(rule: string, on: boolean): Promise<void> {
    const others = this.run.rules.muted.filter(name => name !== rule);
    const muted = on ? [...others, rule] : others;
    await this.service.edit(this.run.id, { muted });
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._asking.dispose();
    this.run.rulesChanged.disconnect(this._onRules, this);
    this._rechecks.forEach(model => model.dispose());
    Signal.clearData(this);
  }

  private _onRules(): void {
    this._rows = ruleRows(this.run.rules);
    this._changed.emit();
  }

  /** Titles and explanations, asked for until they are there; without them the names must do. */
  private async _load(): Promise<void> {
    this._catalogue = await this.service.client.ruleCatalogue();
    if (!this._isDisposed) {
      void this._asking.stop();
      this._changed.emit();
    }
  }

  private _asking: Poll;
  private _catalogue: ReadonlyArray<IRuleInfo> = [];
  private _changed = new Signal<this, void>(this);
  private _finding = '';
  private _isDisposed = false;
  private _rechecks = new Map<string, RecheckModel>();
  private _rows: ReadonlyArray<IRuleRow> = [];
  private _rule = '';
}

/** Statics of the model. */
export namespace RulesModel {
  /** What it needs. */
  export interface IOptions {
    readonly run: RunModel;
    readonly service: ITdbgService;
  }
}
