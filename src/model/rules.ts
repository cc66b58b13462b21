/**
 * Findings and rule states in the order in which people want them: the worst first, what follows
 * from something below it.
 */
import type { IFinding, IFix, IRuleState, IRules, Severity } from '../api/wire';
import { formatNumber } from './format';
import { humanize } from './params';

/** From the worst to the mildest. */
export const SEVERITIES: ReadonlyArray<Severity> = [
  'critical',
  'warning',
  'notice'
];

/** One rule of a run. */
export interface IRuleRow {
  readonly rule: string;
  /** Where it stands; null when only its findings are left. */
  readonly state: IRuleState | null;
  /** The worst first. */
  readonly findings: ReadonlyArray<IFinding>;
  /** Of the worst finding. */
  readonly severity: Severity | null;
  /** Where its trouble began; -1 without findings. */
  readonly first: number;
  readonly muted: boolean;
  /** The rule whose finding all of its own follow from; empty for a root cause. */
  readonly follows: string;
}

/** A stretch of steps with findings. */
export interface ISpan {
  readonly first: number;
  /** Inclusive. */
  readonly last: number;
  readonly severity: Severity;
}

/** The worst first, then the earliest first. */
export function byWeight(
  findings: ReadonlyArray<IFinding>
): ReadonlyArray<IFinding> {
  return [...findings].sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      a.step_first - b.step_first
  );
}

/** One row for each rule: those in trouble first, consequences below their cause. */
export function ruleRows(rules: IRules): ReadonlyArray<IRuleRow> {
  const names = [
    ...rules.states.map(state => state.rule),
    ...rules.findings.map(finding => finding.rule)
  ];
  const byId = new Map(
    rules.findings.map(finding => [finding.id, finding] as const)
  );
  const rows = [...new Set(names)].map(rule => {
    const findings = byWeight(rules.findings.filter(f => f.rule === rule));
    return {
      rule,
      state: rules.states.find(state => state.rule === rule) ?? null,
      findings,
      severity: findings[0]?.severity ?? null,
      first:
        findings.length > 0 ? Math.min(...findings.map(f => f.step_first)) : -1,
      muted: rules.muted.includes(rule),
      follows: Private.follows(rule, findings, byId)
    };
  });
  return Private.grouped(
    rows.sort((a, b) => Private.weight(a) - Private.weight(b))
  );
}

/** Findings that follow from `finding`, directly. */
export function consequences(
  finding: IFinding,
  all: ReadonlyArray<IFinding>
): ReadonlyArray<IFinding> {
  return finding.id ? all.filter(other => other.cause === finding.id) : [];
}

/** The finding that `finding` follows from, if it is known. */
export function causeOf(
  finding: IFinding,
  all: ReadonlyArray<IFinding>
): IFinding | undefined {
  return finding.cause
    ? all.find(other => other.id === finding.cause)
    : undefined;
}

/** When there were findings, the mildest first: what is drawn last is seen. */
export function spans(findings: ReadonlyArray<IFinding>): ReadonlyArray<ISpan> {
  return [...byWeight(findings)].reverse().map(finding => ({
    first: finding.step_first,
    last: finding.step_last,
    severity: finding.severity
  }));
}

/** A fix in words: `learning rate × 0.1`, `gradient clipping = 1`. */
export function fixWords(fix: IFix): string {
  const { setting, factor, value, ...rest } = fix;
  const name = humanize(String(setting ?? ''));
  const change =
    factor !== undefined
      ? `${name} × ${Private.plain(factor)}`
      : value !== undefined
        ? `${name} = ${Private.plain(value)}`
        : name;
  const more = Object.entries(rest).map(
    ([key, part]) => `${humanize(key)} = ${Private.plain(part)}`
  );
  return [change, ...more].filter(Boolean).join(', ');
}

namespace Private {
  /** Each row followed by those that follow from it; the members of a circle come last. */
  export function grouped(
    rows: ReadonlyArray<IRuleRow>
  ): ReadonlyArray<IRuleRow> {
    const placed = new Set<IRuleRow>();
    const place = (row: IRuleRow): void => {
      if (!placed.has(row)) {
        placed.add(row);
        rows.filter(other => other.follows === row.rule).forEach(place);
      }
    };
    rows.filter(row => !row.follows).forEach(place);
    rows.forEach(place);
    return [...placed];
  }

  /** The rule that all findings follow from, when they follow from another one. */
  export function follows(
    rule: string,
    findings: ReadonlyArray<IFinding>,
    byId: ReadonlyMap<string, IFinding>
  ): string {
    const causes = findings.map(finding => byId.get(finding.cause)?.rule ?? '');
    const [first] = causes;
    return first && first !== rule && causes.every(cause => cause !== '')
      ? first
      : '';
  }

  /** Place of a row: by severity, then broken rules, those at work, those without a say. */
  export function weight(row: IRuleRow): number {
    if (row.severity) {
      const muted = row.muted ? SEVERITIES.length : 0;
      return SEVERITIES.indexOf(row.severity) + muted;
    }
    const order = ['error', 'in_progress', 'no_issue', 'stopped'];
    const place = order.indexOf(row.state?.status ?? 'not_applicable');
    return 10 + (place < 0 ? order.length : place);
  }

  export function plain(value: IFix[string]): string {
    return typeof value === 'number' ? formatNumber(value) : String(value);
  }
}
