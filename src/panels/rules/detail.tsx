/**
 * The chosen rule: what it sees, what it found, what to do about it.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import type { IFinding } from '../../api/wire';
import { formatDuration, formatStep } from '../../model/format';
import { causeOf, consequences, fixWords } from '../../model/rules';
import { useSignals } from '../signals';
import { SeverityIcon, severityWord } from '../words';
import { Evidence } from './numbers';
import { applyFix, showFinding } from './show';
import type { IRulesProps } from './table';
import { StateWord } from './table';

/** Most findings of a rule that are listed unasked: what stands below them stays in reach. */
const MOST_LISTED = 20;

/** What the detail needs. */
export interface IDetailProps extends IRulesProps {
  readonly commands: CommandRegistry;
}

/** The widget that holds the detail. */
export class RuleDetail extends ReactWidget {
  constructor(props: IDetailProps) {
    super();
    this.addClass('jp-TdbgRules-detail');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Detail {...this._props} />;
  }

  private _props: IDetailProps;
}

function Detail(props: IDetailProps): JSX.Element | null {
  const { model, trans } = props;
  useSignals(model.changed, model.run.changed);
  const { row } = model;
  if (!row) {
    return null;
  }
  const explanation = model.info(row.rule)?.explanation;
  return (
    <div role="group" aria-label={trans.__('Rule: %1', model.title(row.rule))}>
      <div className="jp-TdbgRules-head">
        <h3>{model.title(row.rule)}</h3>
        {row.state && <StateWord status={row.state.status} trans={trans} />}
        <MuteButton rule={row.rule} isMuted={row.muted} {...props} />
      </div>
      {explanation && <p className="jp-TdbgRules-explanation">{explanation}</p>}
      {row.state && (
        <p className="jp-TdbgRules-explanation">
          {row.state.step_checked >= 0
            ? trans.__(
                'Checked to step %1 in %2.',
                formatStep(row.state.step_checked),
                formatDuration(row.state.cost_ms)
              )
            : trans.__('No step checked.')}{' '}
          {row.state.reason}
        </p>
      )}
      {row.findings.length > 0 && (
        <Findings key={row.rule} findings={row.findings} {...props} />
      )}
    </div>
  );
}

/** The worst findings of a rule, all up to the chosen one, and the others on request. */
function Findings(
  props: IDetailProps & { readonly findings: ReadonlyArray<IFinding> }
): JSX.Element {
  const { findings, model, trans } = props;
  const [isAll, setAll] = React.useState(false);
  const chosen = findings.findIndex(one => one === model.finding);
  const listed = isAll
    ? findings
    : findings.slice(0, Math.max(MOST_LISTED, chosen + 1));
  const rest = findings.length - listed.length;
  return (
    <>
      <ul className="jp-TdbgRules-findings" aria-label={trans.__('Findings')}>
        {listed.map((finding, i) => (
          <Finding key={finding.id || i} finding={finding} {...props} />
        ))}
      </ul>
      {(isAll || rest > 0) && (
        <button
          className="jp-TdbgLink"
          aria-expanded={isAll}
          onClick={() => setAll(!isAll)}
        >
          {isAll
            ? trans.__('Show the worst only')
            : trans._n('Show %1 more finding', 'Show %1 more findings', rest)}
        </button>
      )}
    </>
  );
}

/** Mute the rule, or hear it again. */
function MuteButton(
  props: IDetailProps & { readonly rule: string; readonly isMuted: boolean }
): JSX.Element {
  const { model, rule, isMuted, trans } = props;
  const [problem, setProblem] = React.useState('');
  return (
    <>
      <button
        className="jp-TdbgButton"
        aria-pressed={isMuted}
        title={
          isMuted
            ? trans.__('Tell again what this rule finds in this run')
            : trans.__(
                'No more notifications and badges for what this rule finds in this run'
              )
        }
        onClick={() => {
          setProblem('');
          model.mute(rule, !isMuted).catch(error => setProblem(String(error)));
        }}
      >
        {isMuted ? trans.__('Unmute') : trans.__('Mute')}
      </button>
      {problem && (
        <span role="alert" className="jp-TdbgRules-problem">
          {problem}
        </span>
      )}
    </>
  );
}

/** One finding: what is wrong, the numbers, what to do. */
function Finding(
  props: IDetailProps & { readonly finding: IFinding }
): JSX.Element {
  const { finding, model, trans } = props;
  const { run } = model;
  const steps =
    finding.step_first === finding.step_last
      ? trans.__('step %1', formatStep(finding.step_first))
      : trans.__(
          'steps %1 to %2',
          formatStep(finding.step_first),
          formatStep(finding.step_last)
        );
  const isChosen = model.finding === finding;
  return (
    <li
      className={`jp-TdbgFinding jp-mod-${finding.severity}${
        isChosen ? ' jp-mod-current' : ''
      }`}
      aria-current={isChosen}
    >
      <div className="jp-TdbgFinding-head">
        <SeverityIcon severity={finding.severity} />
        <span className="jp-TdbgFinding-severity">
          {severityWord(finding.severity, trans)}
        </span>
        {finding.tensor && (
          <span className="jp-TdbgFinding-tensor">{finding.tensor}</span>
        )}
        {finding.rank !== null && (
          <span>{trans.__('rank %1', String(finding.rank))}</span>
        )}
        <button
          className="jp-TdbgLink"
          title={trans.__('Set the step cursor there')}
          onClick={() => run.cursor.set(finding.step_last)}
        >
          {steps}
        </button>
      </div>
      <p className="jp-TdbgFinding-message">{finding.message}</p>
      <Links {...props} />
      {finding.advice.length > 0 && (
        <ol
          className="jp-TdbgFinding-advice"
          aria-label={trans.__('What to do')}
        >
          {finding.advice.map(advice => (
            <li key={advice}>{advice}</li>
          ))}
        </ol>
      )}
      <Actions {...props} />
      <Evidence finding={finding} trans={trans} />
    </li>
  );
}

/** What one may do about a finding. */
function Actions(
  props: IDetailProps & { readonly finding: IFinding }
): JSX.Element {
  const { finding, model, commands, trans } = props;
  const { run } = model;
  const { fix } = finding;
  const reason = run.rules.fixes[finding.id] ?? '';
  const words = [run.rules.answers[finding.id], reason].filter(Boolean);
  return (
    <div className="jp-TdbgFinding-foot">
      {(finding.view || finding.tensor) && (
        <button
          className="jp-TdbgButton"
          title={trans.__('Open the picture that shows it, at its step')}
          onClick={() => {
            model.choose(finding.rule, finding.id);
            void showFinding(commands, run, finding);
          }}
        >
          {trans.__('Show me')}
        </button>
      )}
      {fix && (
        <button
          className="jp-TdbgButton"
          disabled={reason !== ''}
          title={
            reason || trans.__('Change the running training: %1', fixWords(fix))
          }
          onClick={() => {
            void applyFix(model.service, run, finding, trans);
          }}
        >
          {trans.__('Apply fix: %1', fixWords(fix))}
        </button>
      )}
      {fix && words.length > 0 && (
        <span className="jp-TdbgRules-explanation">{words.join(' ')}</span>
      )}
    </div>
  );
}

/** What it follows from, and what follows from it. */
function Links(
  props: IDetailProps & { readonly finding: IFinding }
): JSX.Element | null {
  const { finding, model, trans } = props;
  const { findings } = model.run.rules;
  const cause = causeOf(finding, findings);
  const below = consequences(finding, findings);
  if (!cause && below.length === 0) {
    return null;
  }
  const link = (other: IFinding, times = 1): JSX.Element => (
    <button
      key={other.id}
      className="jp-TdbgLink"
      title={other.message}
      onClick={() => model.choose(other.rule, other.id)}
    >
      {model.title(other.rule)}
      {times > 1 && ` × ${times}`}
    </button>
  );
  return (
    <p className="jp-TdbgFinding-links">
      {cause && (
        <>
          {trans.__('Follows from:')} {link(cause)}
        </>
      )}
      {below.length > 0 && (
        <>
          {trans.__('What follows from it:')}{' '}
          {byRule(below).map(same => link(same[0], same.length))}
        </>
      )}
    </p>
  );
}

/** Findings of one rule together, in the order of the first of each. */
function byRule(
  findings: readonly IFinding[]
): readonly (readonly IFinding[])[] {
  const found = new Map<string, IFinding[]>();
  for (const one of findings) {
    found.set(one.rule, [...(found.get(one.rule) ?? []), one]);
  }
  return [...found.values()];
}
