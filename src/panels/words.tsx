/**
 * States and severities as icon and word: never by colour alone.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type {
  IFindingCounts,
  IRunSummary,
  RuleStatus,
  RunStatus,
  Severity
} from '../api/wire';
import { runStatusIcons, severityIcons } from '../icons';
import { formatStep } from '../model/format';

/** The word for the state of a run. */
export function runStatusWord(
  status: RunStatus,
  trans: TranslationBundle
): string {
  switch (status) {
    case 'running':
      return trans.__('live');
    case 'finished':
      return trans.__('finished');
    case 'stopped':
      return trans.__('stopped');
    case 'failed':
      return trans.__('failed');
    case 'crashed':
      return trans.__('crashed');
  }
}

/** The step that is shown, as a beginning of a line; a run has none before its first saved one. */
export function stepWords(
  step: number,
  isLive: boolean,
  trans: TranslationBundle
): string {
  if (step >= 0) {
    return trans.__('Step %1', formatStep(step));
  }
  return isLive ? trans.__('No step yet') : trans.__('No steps');
}

/** The last step of a run, among other words. */
export function lastStepWords(
  run: Pick<IRunSummary, 'last_step' | 'status'>,
  trans: TranslationBundle
): string {
  if (run.last_step >= 0) {
    return trans.__('step %1', formatStep(run.last_step));
  }
  return run.status === 'running'
    ? trans.__('no step yet')
    : trans.__('no steps');
}

/** The word for a severity. */
export function severityWord(
  severity: Severity,
  trans: TranslationBundle
): string {
  switch (severity) {
    case 'notice':
      return trans.__('notice');
    case 'warning':
      return trans.__('warning');
    case 'critical':
      return trans.__('critical');
  }
}

/** The word for where a rule stands. */
export function ruleStatusWord(
  status: RuleStatus,
  trans: TranslationBundle
): string {
  switch (status) {
    case 'in_progress':
      return trans.__('checking');
    case 'no_issue':
      return trans.__('no issue');
    case 'issue_found':
      return trans.__('issue found');
    case 'error':
      return trans.__('error');
    case 'stopped':
      return trans.__('stopped');
    case 'not_applicable':
      return trans.__('not applicable');
  }
}

/** Icon of the state of a run. */
export function RunStatusIcon(props: {
  readonly status: RunStatus;
}): JSX.Element {
  const icon = runStatusIcons[props.status];
  return (
    <icon.react
      tag="span"
      className={`jp-TdbgStatus-icon jp-mod-${props.status}`}
      width="14px"
      height="14px"
    />
  );
}

/** Icon of a severity. */
export function SeverityIcon(props: {
  readonly severity: Severity;
}): JSX.Element {
  const icon = severityIcons[props.severity];
  return (
    <icon.react
      tag="span"
      className={`jp-TdbgSeverity-icon jp-mod-${props.severity}`}
      width="14px"
      height="14px"
    />
  );
}

/** A number of findings. */
export function FindingBadge(props: {
  readonly severity: Severity;
  readonly count: number;
  readonly title: string;
}): JSX.Element {
  const { severity, count, title } = props;
  return (
    <span
      className={`jp-TdbgBadges-badge jp-mod-${severity}`}
      title={title}
      aria-label={title}
      role="img"
    >
      <SeverityIcon severity={severity} />
      {count}
    </span>
  );
}

/** Number of findings by severity, the worst first; nothing when there are none. */
export function FindingBadges(props: {
  readonly counts: IFindingCounts;
  readonly trans: TranslationBundle;
}): JSX.Element | null {
  const { counts, trans } = props;
  const severities: ReadonlyArray<Severity> = ['critical', 'warning', 'notice'];
  const present = severities.filter(severity => counts[severity] > 0);
  if (present.length === 0) {
    return null;
  }
  return (
    <span className="jp-TdbgBadges">
      {present.map(severity => {
        const word = severityWord(severity, trans);
        const label = trans.__('%1 × %2', counts[severity], word);
        return (
          <FindingBadge
            key={severity}
            severity={severity}
            count={counts[severity]}
            title={label}
          />
        );
      })}
    </span>
  );
}
