/**
 * The item of the status bar: the current run at a glance.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import * as React from 'react';

import { formatRate } from '../model/format';
import { SEVERITIES, byWeight } from '../model/rules';
import type { ITdbgService } from '../tokens';
import { isolated, runName } from './name';
import { useSignals } from './signals';
import {
  FindingBadges,
  RunStatusIcon,
  lastStepWords,
  runStatusWord
} from './words';

/** What the item needs. */
export interface IStatusProps {
  readonly service: ITdbgService;
  readonly trans: TranslationBundle;
  /** The run was clicked. */
  readonly onClick: () => void;
  /** The findings were clicked. */
  readonly onFindings: () => void;
}

/** The item; active while a run is open. */
export class StatusItem extends ReactWidget {
  constructor(props: IStatusProps) {
    super();
    this.addClass('jp-TdbgStatusItem');
    this._props = props;
    props.service.currentChanged.connect(this._onCurrent, this);
  }

  /** Whether there is anything to show. */
  get isActive(): boolean {
    return this._props.service.current !== null;
  }

  /** Emits after `isActive` changed. */
  get activeStateChanged(): ISignal<this, void> {
    return this._activeStateChanged;
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._props.service.currentChanged.disconnect(this._onCurrent, this);
    super.dispose();
  }

  protected override render(): JSX.Element {
    return <Status {...this._props} />;
  }

  private _onCurrent(): void {
    this._activeStateChanged.emit();
  }

  private _activeStateChanged = new Signal<this, void>(this);
  private _props: IStatusProps;
}

function Status(props: IStatusProps): JSX.Element | null {
  const { service, trans, onClick, onFindings } = props;
  const run = service.current;
  useSignals(service.currentChanged, run?.changed, run?.rulesChanged);
  const summary = run?.summary;
  if (!run || !summary) {
    return null;
  }
  const hasFindings = SEVERITIES.some(each => summary.findings[each] > 0);
  const { findings, muted } = run.rules;
  const [worst] = byWeight(findings.filter(f => !muted.includes(f.rule)));
  const rate =
    summary.status === 'running' ? formatRate(summary.steps_per_second) : '';
  return (
    <>
      <button
        className="jp-TdbgStatusItem-button"
        title={trans.__(
          'Tensor Debugger: %1 is %2',
          isolated(runName(run, trans)),
          runStatusWord(summary.status, trans)
        )}
        onClick={onClick}
      >
        <RunStatusIcon status={summary.status} />
        <bdi className="jp-TdbgStatusItem-name">{runName(run, trans)}</bdi>
        <span>{lastStepWords(summary, trans)}</span>
        {rate && <span>{rate}</span>}
      </button>
      {hasFindings && (
        <button
          className="jp-TdbgStatusItem-button"
          title={
            worst
              ? trans.__('What the rules saw, the worst: %1', worst.message)
              : trans.__('What the rules saw')
          }
          onClick={onFindings}
        >
          <FindingBadges counts={summary.findings} trans={trans} />
        </button>
      )}
    </>
  );
}
