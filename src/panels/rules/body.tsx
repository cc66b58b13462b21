/**
 * What the rules saw: findings with advice, and where each rule stands.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import type {
  IFinding,
  IRuleState,
  IRules,
  RuleStatus,
  Severity,
  WireNumber
} from '../../api/wire';
import { CommandIDs } from '../../commands';
import { formatDuration, formatNumber, formatStep } from '../../model/format';
import { humanize } from '../../model/params';
import type { RunModel } from '../../model/run';
import { EmptyState } from '../empty';
import { useSignals } from '../signals';
import { SeverityIcon, ruleStatusWord, severityWord } from '../words';

const ORDER: ReadonlyArray<Severity> = ['critical', 'warning', 'notice'];

/** What the panel needs. */
export interface IRulesProps {
  readonly run: RunModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The widget that holds the panel. */
export class RulesBody extends ReactWidget {
  constructor(props: IRulesProps) {
    super();
    this.addClass('jp-TdbgRules');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Rules {...this._props} />;
  }

  private _props: IRulesProps;
}

function Rules(props: IRulesProps): JSX.Element {
  const { run, trans } = props;
  useSignals(run.rulesChanged, run.changed);
  const { states, findings } = run.rules;
  if (states.length === 0 && findings.length === 0) {
    return <NoRules {...props} />;
  }
  return (
    <>
      <section aria-label={trans.__('Findings')}>
        <h3 className="jp-TdbgRules-title">
          {trans._n('%1 finding', '%1 findings', findings.length)}
        </h3>
        {findings.length === 0 ? (
          <p className="jp-TdbgRules-calm">{calm(states, trans)}</p>
        ) : (
          <ul className="jp-TdbgRules-findings">
            {sorted(findings).map((finding, i) => (
              <Finding key={finding.id || i} finding={finding} {...props} />
            ))}
          </ul>
        )}
      </section>
      {states.length > 0 && <States states={states} trans={trans} />}
    </>
  );
}

/** One finding: what is wrong, the numbers, what to do. */
function Finding(
  props: IRulesProps & { readonly finding: IFinding }
): JSX.Element {
  const { finding, run, commands, trans } = props;
  const { view } = finding;
  const steps =
    finding.step_first === finding.step_last
      ? trans.__('step %1', formatStep(finding.step_first))
      : trans.__(
          'steps %1 to %2',
          formatStep(finding.step_first),
          formatStep(finding.step_last)
        );
  const evidence = Object.entries(finding.evidence ?? {});
  return (
    <li className={`jp-TdbgFinding jp-mod-${finding.severity}`}>
      <div className="jp-TdbgFinding-head">
        <SeverityIcon severity={finding.severity} />
        <span className="jp-TdbgFinding-severity">
          {severityWord(finding.severity, trans)}
        </span>
        <span className="jp-TdbgFinding-rule">{humanize(finding.rule)}</span>
        <button
          className="jp-TdbgLink"
          title={trans.__('Set the step cursor there')}
          onClick={() => run.cursor.set(finding.step_last)}
        >
          {steps}
        </button>
      </div>
      <p className="jp-TdbgFinding-message">{finding.message}</p>
      {finding.advice.length > 0 && (
        <ul
          className="jp-TdbgFinding-advice"
          aria-label={trans.__('What to do')}
        >
          {finding.advice.map(advice => (
            <li key={advice}>{advice}</li>
          ))}
        </ul>
      )}
      <div className="jp-TdbgFinding-foot">
        {view && (
          <button
            className="jp-TdbgButton"
            onClick={() => {
              void commands.execute(CommandIDs.openView, {
                run: run.id,
                view: view.name,
                params: view.params
              });
            }}
          >
            {trans.__('Show me')}
          </button>
        )}
        {!view && finding.tensor && (
          <button
            className="jp-TdbgButton"
            onClick={() => {
              void commands.execute(CommandIDs.showTensor, {
                run: run.id,
                tensor: finding.tensor
              });
            }}
          >
            {trans.__('Show me')}
          </button>
        )}
        {evidence.length > 0 && (
          <details className="jp-TdbgFinding-evidence">
            <summary>{trans.__('Evidence')}</summary>
            <dl>
              {evidence.map(([name, value]) => (
                <React.Fragment key={name}>
                  <dt>{humanize(name)}</dt>
                  <dd>{plain(value)}</dd>
                </React.Fragment>
              ))}
            </dl>
          </details>
        )}
      </div>
    </li>
  );
}

/** Where each rule stands. */
function States(props: {
  readonly states: ReadonlyArray<IRuleState>;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { states, trans } = props;
  return (
    <section aria-label={trans.__('Rules')}>
      <h3 className="jp-TdbgRules-title">{trans.__('Rules')}</h3>
      <table className="jp-TdbgRules-table">
        <thead>
          <tr>
            <th scope="col">{trans.__('Rule')}</th>
            <th scope="col">{trans.__('State')}</th>
            <th scope="col" className="jp-mod-number">
              {trans.__('Step')}
            </th>
            <th scope="col" className="jp-mod-number">
              {trans.__('Cost')}
            </th>
          </tr>
        </thead>
        <tbody>
          {states.map(state => (
            <tr key={state.rule}>
              <th scope="row" title={parameters(state)}>
                {humanize(state.rule)}
              </th>
              <td title={state.reason}>
                <span className={`jp-TdbgRules-state jp-mod-${state.status}`}>
                  {symbol(state.status)} {ruleStatusWord(state.status, trans)}
                </span>
              </td>
              <td className="jp-mod-number">
                {formatStep(state.step_checked)}
              </td>
              <td className="jp-mod-number">{formatDuration(state.cost_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Why there is nothing to show. */
function NoRules(props: IRulesProps): JSX.Element {
  const { run, trans } = props;
  if (run.state === 'missing') {
    return <EmptyState title={trans.__('This run was deleted')} />;
  }
  return run.state === 'loading' ? (
    <EmptyState title={trans.__('Reading the run…')} />
  ) : (
    <EmptyState
      title={trans.__('No rules watch this run')}
      code={'tdbg.attach(model, rules="default")'}
    >
      {trans.__('Attach with rules to have trouble found while training:')}
    </EmptyState>
  );
}

/** What to say while nothing was found. */
function calm(
  states: ReadonlyArray<IRuleState>,
  trans: TranslationBundle
): string {
  return states.some(state => state.status === 'in_progress')
    ? trans.__('Nothing found so far.')
    : trans.__('Nothing found.');
}

/** The worst first, then the latest first. */
function sorted(findings: IRules['findings']): IRules['findings'] {
  return [...findings].sort(
    (a, b) =>
      ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) ||
      b.step_last - a.step_last
  );
}

function symbol(status: RuleStatus): string {
  return {
    in_progress: '◌',
    no_issue: '✓',
    issue_found: '▲',
    error: '✕',
    stopped: '■',
    not_applicable: '–'
  }[status];
}

function parameters(state: IRuleState): string {
  return Object.entries(state.parameters ?? {})
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    .join('\n');
}

function plain(value: WireNumber): string {
  return typeof value === 'number' ? formatNumber(value) : String(value ?? '');
}
