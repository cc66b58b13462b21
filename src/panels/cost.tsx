/**
 * What the debugger itself costs a training, in few words and in all: both from one list of facts.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IRunCost } from '../api/wire';
import {
  formatBytes,
  formatDuration,
  formatShare,
  formatStep
} from '../model/format';

/** What is told, and in which language. */
export interface ICostProps {
  readonly cost: IRunCost | null;
  readonly trans: TranslationBundle;
}

/** The facts that are known, the most telling first; none before the first saved step. */
export function costFacts(
  cost: IRunCost | null,
  trans: TranslationBundle
): ReadonlyArray<string> {
  if (!cost || cost.capture_ms === null) {
    return [];
  }
  return [
    cost.share !== null && trans.__('%1 of the time', formatShare(cost.share)),
    trans.__('%1 in capture', formatDuration(cost.capture_ms)),
    cost.bytes_written !== null &&
      trans.__('%1 written', formatBytes(cost.bytes_written)),
    cost.save_every !== null &&
      trans.__('1 step in %1 saved', formatStep(cost.save_every))
  ].filter((fact): fact is string => fact !== false);
}

/** The first fact; the others when the mouse rests on it. */
export function ShortCost(props: ICostProps): JSX.Element | null {
  const { trans } = props;
  const facts = costFacts(props.cost, trans);
  return facts.length === 0 ? null : (
    <span
      className="jp-TdbgDashboard-cost"
      title={[explained(trans), ...facts].join('\n')}
    >
      {trans.__('Own cost: %1', facts[0])}
    </span>
  );
}

/** All facts. */
export function LongCost(props: ICostProps): JSX.Element | null {
  const { trans } = props;
  const facts = costFacts(props.cost, trans);
  return facts.length === 0 ? null : (
    <div className="jp-TdbgRun-cost" title={explained(trans)}>
      <span className="jp-TdbgRun-costLabel">{trans.__('Own cost')}</span>
      {facts.join(' · ')}
    </div>
  );
}

function explained(trans: TranslationBundle): string {
  return trans.__('What the debugger itself costs the training');
}
