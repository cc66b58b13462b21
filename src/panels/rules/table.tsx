/**
 * The rules of a run, one row each: where they stand, how bad it is, since when, what they cost.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IRuleState, RuleStatus } from '../../api/wire';
import { formatDuration, formatStep } from '../../model/format';
import type { IRuleRow } from '../../model/rules';
import { EmptyState } from '../empty';
import { missingRun } from '../name';
import { useSignals } from '../signals';
import { SeverityIcon, ruleStatusWord, severityWord } from '../words';
import type { RulesModel } from './model';
import { Trend } from './trend';

/** What the parts of the panel need. */
export interface IRulesProps {
  readonly model: RulesModel;
  readonly trans: TranslationBundle;
}

/** The widget that holds the table. */
export class RulesTable extends ReactWidget {
  constructor(props: IRulesProps) {
    super();
    this.addClass('jp-TdbgRules-list');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Rules {...this._props} />;
  }

  private _props: IRulesProps;
}

function Rules(props: IRulesProps): JSX.Element {
  const { model, trans } = props;
  const [isAll, setAll] = React.useState(false);
  useSignals(model.changed, model.run.changed);
  const { rows } = model;
  if (rows.length === 0) {
    return <NoRules {...props} />;
  }
  const silent = rows.filter(row => !hasSay(row));
  const shown = isAll ? rows : rows.filter(hasSay);
  return (
    <div role="group" aria-label={trans.__('Rules')}>
      <h3 className="jp-TdbgRules-title">{headline(rows, trans)}</h3>
      {shown.length > 0 && (
        <table className="jp-TdbgRules-table">
          <Head trans={trans} />
          <tbody>
            {shown.map(row => (
              <Row key={row.rule} row={row} {...props} />
            ))}
          </tbody>
        </table>
      )}
      {silent.length > 0 && (
        <button
          className="jp-TdbgLink"
          aria-expanded={isAll}
          onClick={() => setAll(!isAll)}
        >
          {isAll
            ? trans.__('Hide rules that do not apply')
            : trans._n(
                'Show %1 rule that does not apply',
                'Show %1 rules that do not apply',
                silent.length
              )}
        </button>
      )}
    </div>
  );
}

function Head(props: { readonly trans: TranslationBundle }): JSX.Element {
  const { trans } = props;
  return (
    <thead>
      <tr>
        <th scope="col">{trans.__('Rule')}</th>
        <th scope="col">{trans.__('State')}</th>
        <th scope="col" className="jp-mod-severity">
          {trans.__('Severity')}
        </th>
        <th scope="col" className="jp-mod-number jp-mod-first">
          {trans.__('First step')}
        </th>
        <th scope="col" className="jp-mod-trend">
          {trans.__('Over steps')}
        </th>
        <th scope="col" className="jp-mod-number jp-mod-cost">
          {trans.__('Cost')}
        </th>
      </tr>
    </thead>
  );
}

function Row(props: IRulesProps & { readonly row: IRuleRow }): JSX.Element {
  const { model, row, trans } = props;
  const { state, severity } = row;
  const isChosen = model.row?.rule === row.rule;
  const choose = (): void => model.choose(row.rule);
  return (
    <tr
      className={isChosen ? 'jp-mod-current' : ''}
      data-tdbg-rule={row.rule}
      onClick={choose}
    >
      <th scope="row">
        <button
          className={`jp-TdbgRules-name${row.follows ? ' jp-mod-follows' : ''}`}
          aria-pressed={isChosen}
          title={
            row.follows
              ? trans.__('Follows from %1', model.title(row.follows))
              : model.info(row.rule)?.explanation
          }
          onClick={choose}
        >
          {row.follows && <span aria-hidden="true">↳ </span>}
          {model.title(row.rule)}
        </button>
        {row.muted && <span className="jp-TdbgTag">{trans.__('muted')}</span>}
      </th>
      <td title={state?.reason}>
        {state && <StateWord status={state.status} trans={trans} />}
      </td>
      <td className="jp-mod-severity">
        {severity && (
          <span className="jp-TdbgRules-severity">
            <SeverityIcon severity={severity} />
            {severityWord(severity, trans)}
            {row.findings.length > 1 && ` × ${row.findings.length}`}
          </span>
        )}
      </td>
      <td className="jp-mod-number jp-mod-first">
        {row.first >= 0 ? formatStep(row.first) : ''}
      </td>
      <td className="jp-mod-trend">
        <Trend
          findings={row.findings}
          checked={state?.step_checked ?? -1}
          lastStep={model.run.summary?.last_step ?? -1}
          trans={trans}
        />
      </td>
      <td
        className="jp-mod-number jp-mod-cost"
        title={checkedWords(state, trans)}
      >
        {state && state.cost_ms > 0 ? formatDuration(state.cost_ms) : ''}
      </td>
    </tr>
  );
}

/** Where a rule stands, as sign and word. */
export function StateWord(props: {
  readonly status: RuleStatus;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { status, trans } = props;
  return (
    <span className={`jp-TdbgRules-state jp-mod-${status}`}>
      <span aria-hidden="true">{SIGNS[status]}</span>{' '}
      {ruleStatusWord(status, trans)}
    </span>
  );
}

const SIGNS: { readonly [status in RuleStatus]: string } = {
  in_progress: '◌',
  no_issue: '✓',
  issue_found: '▲',
  error: '✕',
  stopped: '■',
  not_applicable: '–'
};

/** Why there is nothing to show. */
function NoRules(props: IRulesProps): JSX.Element {
  const { model, trans } = props;
  switch (model.run.state) {
    case 'missing':
      return <EmptyState title={missingRun(model.run, trans)} />;
    case 'loading':
      return <EmptyState title={trans.__('Reading the run…')} />;
    case 'error':
      return (
        <EmptyState title={trans.__('The run could not be read')}>
          {model.run.error}
        </EmptyState>
      );
    case 'ready': {
      const live = model.run.summary?.status === 'running';
      return (
        <EmptyState
          title={
            live
              ? trans.__('No rules watch this run yet')
              : trans.__('No rules watched this run')
          }
          code={'tdbg.attach(model, rules="default")'}
        >
          {live
            ? trans.__(
                'Rules take some seconds to start. Attach with rules to have trouble found while training:'
              )
            : trans.__(
                'Attach with rules to have trouble found while training:'
              )}
        </EmptyState>
      );
    }
  }
}

/** Whether a rule has anything to say about the run. */
function hasSay(row: IRuleRow): boolean {
  return row.findings.length > 0 || row.state?.status !== 'not_applicable';
}

/** How it stands in one line. */
function headline(
  rows: ReadonlyArray<IRuleRow>,
  trans: TranslationBundle
): string {
  const count = rows.reduce((sum, row) => sum + row.findings.length, 0);
  if (count > 0) {
    return trans._n('%1 finding', '%1 findings', count);
  }
  return rows.some(row => row.state?.status === 'in_progress')
    ? trans.__('Nothing found so far')
    : trans.__('Nothing found');
}

function checkedWords(
  state: IRuleState | null,
  trans: TranslationBundle
): string | undefined {
  return state && state.step_checked >= 0
    ? trans.__('Checked to step %1', formatStep(state.step_checked))
    : undefined;
}
