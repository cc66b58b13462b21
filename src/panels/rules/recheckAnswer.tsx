/**
 * What became of a check with other thresholds.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IFinding, IThreshold } from '../../api/wire';
import { formatStep } from '../../model/format';
import type { RecheckModel } from '../../model/recheck';
import type { IRuleRow } from '../../model/rules';
import { SeverityIcon, severityWord } from '../words';
import { refusalOf } from './refusal';
import type { IRulesProps } from './table';
import { Trend } from './trend';

/** Most findings listed of each side. */
const MOST_LISTED = 20;

/** What the answer is to. */
interface IRecheckAnswerProps extends IRulesProps {
  readonly row: IRuleRow;
  readonly thresholds: ReadonlyArray<IThreshold>;
  readonly recheck: RecheckModel;
}

/** Where the check stands, then what it found: in sight, below a form that may be longer than the panel. */
export function RecheckAnswer(props: IRecheckAnswerProps): JSX.Element {
  const { recheck } = props;
  const { state } = recheck;
  const node = React.useRef<HTMLDivElement>(null);
  const seen = React.useRef({ recheck, state });
  React.useEffect(() => {
    const isNews =
      seen.current.recheck === recheck && seen.current.state !== state;
    seen.current = { recheck, state };
    if (isNews) {
      node.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [recheck, state]);
  return (
    <div ref={node}>
      <Answer {...props} />
    </div>
  );
}

function Answer(props: IRecheckAnswerProps): JSX.Element | null {
  const { row, thresholds, recheck, model, trans } = props;
  const { result } = recheck;
  if (recheck.isBusy) {
    return (
      <div className="jp-TdbgRecheck-progress" role="status">
        <progress
          value={recheck.progress}
          aria-label={trans.__('Progress of the check')}
        />
        <span>{recheck.message}</span>
      </div>
    );
  }
  if (recheck.state === 'failed') {
    return (
      <p role="alert" className="jp-TdbgRules-problem">
        {refusalOf(row, thresholds, recheck)}
      </p>
    );
  }
  if (recheck.state === 'cancelled') {
    return <p role="status">{trans.__('The check was cancelled.')}</p>;
  }
  if (!result) {
    return null;
  }
  const sides = [
    {
      title: trans.__('Now'),
      findings: row.findings,
      found: row.findings.length,
      checked: row.state?.step_checked ?? -1
    },
    {
      title: trans.__('With the changed thresholds'),
      findings: result.findings,
      found: result.found,
      checked: result.state.step_checked
    }
  ];
  return (
    <div className="jp-TdbgRecheck-sides">
      {sides.map(side => (
        <Side
          key={side.title}
          {...side}
          lastStep={model.run.summary?.last_step ?? -1}
          trans={trans}
        />
      ))}
    </div>
  );
}

/** One side of the comparison. */
function Side(props: {
  readonly title: string;
  readonly findings: ReadonlyArray<IFinding>;
  readonly found: number;
  readonly checked: number;
  readonly lastStep: number;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { title, findings, found, trans } = props;
  return (
    <div className="jp-TdbgRecheck-side" role="group" aria-label={title}>
      <h4>
        {title}: {trans._n('%1 finding', '%1 findings', found)}
      </h4>
      <Trend {...props} />
      <ul>
        {findings.slice(0, MOST_LISTED).map((finding, i) => (
          <li key={finding.id || i} title={finding.message}>
            <SeverityIcon severity={finding.severity} />
            {severityWord(finding.severity, trans)}
            {' · '}
            {trans.__(
              'steps %1 to %2',
              formatStep(finding.step_first),
              formatStep(finding.step_last)
            )}
            {finding.tensor && ` · ${finding.tensor}`}
          </li>
        ))}
      </ul>
      {found > MOST_LISTED && (
        <p>{trans.__('… and %1 more', String(found - MOST_LISTED))}</p>
      )}
    </div>
  );
}
