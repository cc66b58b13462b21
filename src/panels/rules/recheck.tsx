/**
 * The thresholds of the chosen rule, to be changed and tried on what was recorded.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type {
  IFinding,
  IThresholds,
  IThreshold,
  WireNumber
} from '../../api/wire';
import { formatStep } from '../../model/format';
import { humanize } from '../../model/params';
import type { RecheckModel } from '../../model/recheck';
import type { IRuleRow } from '../../model/rules';
import { useSignals } from '../signals';
import { SeverityIcon, severityWord } from '../words';
import type { IRulesProps } from './table';
import { Trend } from './trend';

/** Most findings listed of each side. */
const MOST_LISTED = 20;

/** The widget that holds form and comparison. */
export class RuleRecheck extends ReactWidget {
  constructor(props: IRulesProps) {
    super();
    this.addClass('jp-TdbgRules-recheck');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Recheck {...this._props} />;
  }

  private _props: IRulesProps;
}

function Recheck(props: IRulesProps): JSX.Element | null {
  const { model, trans } = props;
  useSignals(model.changed, model.recheck.changed);
  const { row, recheck } = model;
  if (!row) {
    return null;
  }
  const info = model.info(row.rule);
  const thresholds = thresholdsOf(row, info);
  if (!info && row.state && model.isCatalogueKnown) {
    return (
      <p className="jp-TdbgRules-explanation">
        {trans.__(
          'This rule lives in a notebook or script: run it again over history there, with tdbg.run_rules.'
        )}
      </p>
    );
  }
  if (thresholds.length === 0) {
    return null;
  }
  return (
    <details
      className="jp-TdbgRecheck"
      open={recheck.state !== 'idle' || undefined}
    >
      <summary>
        {trans.__('Change thresholds and run again over history')}
      </summary>
      <Form
        key={row.rule}
        row={row}
        thresholds={thresholds}
        recheck={recheck}
        trans={trans}
      />
      <Answer {...props} row={row} thresholds={thresholds} recheck={recheck} />
    </details>
  );
}

/** One field for each threshold. */
function Form(props: {
  readonly row: IRuleRow;
  readonly thresholds: ReadonlyArray<IThreshold>;
  readonly recheck: RecheckModel;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { row, thresholds, recheck, trans } = props;
  const [changed, setChanged] = React.useState<IThresholds>({});
  const id = React.useId();
  const refused = refusedOf(row, thresholds, recheck)?.name;
  return (
    <form
      className="jp-TdbgRecheck-form"
      aria-label={trans.__('Thresholds')}
      onSubmit={event => {
        event.preventDefault();
        // What was in force stays in force, but for what was changed here.
        const now = Object.fromEntries(
          thresholds.map(({ name }) => [name, valueOf(row, name)])
        );
        void recheck.start(row.rule, { ...now, ...changed });
      }}
    >
      {thresholds.map(one => {
        const value = changed[one.name] ?? valueOf(row, one.name);
        return (
          <React.Fragment key={one.name}>
            <label htmlFor={`${id}-${one.name}`} title={one.help}>
              {humanize(one.name)}
            </label>
            <Field
              id={`${id}-${one.name}`}
              threshold={one}
              value={value}
              isRefused={
                one.name === refused && value === recheck.thresholds[one.name]
              }
              onChange={value => setChanged({ ...changed, [one.name]: value })}
              trans={trans}
            />
            <span className="jp-TdbgRecheck-help" id={`${id}-${one.name}-help`}>
              {one.help}
            </span>
          </React.Fragment>
        );
      })}
      <div className="jp-TdbgRecheck-buttons">
        <button
          type="submit"
          className="jp-TdbgButton jp-mod-primary"
          disabled={recheck.isBusy}
        >
          {trans.__('Run again')}
        </button>
        {recheck.isBusy && (
          <button
            type="button"
            className="jp-TdbgButton"
            onClick={() => void recheck.cancel()}
          >
            {trans.__('Cancel')}
          </button>
        )}
        {Object.keys(changed).length > 0 && (
          <button
            type="button"
            className="jp-TdbgLink"
            onClick={() => setChanged({})}
          >
            {trans.__('Undo changes')}
          </button>
        )}
      </div>
    </form>
  );
}

/** The field that suits a threshold; numbers travel as text, for the server knows their type. */
function Field(props: {
  readonly id: string;
  readonly threshold: IThreshold;
  readonly value: WireNumber | boolean;
  /** Whether it is what the server did not take. */
  readonly isRefused: boolean;
  readonly onChange: (value: WireNumber | boolean) => void;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { id, threshold, value, isRefused, onChange, trans } = props;
  const common = { id, 'aria-describedby': `${id}-help` };
  if (threshold.type.includes('bool')) {
    return (
      <input
        {...common}
        type="checkbox"
        checked={value === true}
        onChange={event => onChange(event.target.checked)}
      />
    );
  }
  const isNumber = /\b(int|float)\b/.test(threshold.type);
  return (
    <input
      {...common}
      type="text"
      aria-invalid={isRefused}
      inputMode={isNumber ? 'decimal' : 'text'}
      className="jp-TdbgInput"
      spellCheck={false}
      value={value === null ? '' : String(value)}
      placeholder={threshold.type.includes('None') ? trans.__('none') : ''}
      onChange={event => onChange(event.target.value)}
    />
  );
}

/** Where the check stands, and what it found beside what is found now. */
function Answer(
  props: IRulesProps & {
    readonly row: IRuleRow;
    readonly thresholds: ReadonlyArray<IThreshold>;
    readonly recheck: RecheckModel;
  }
): JSX.Element | null {
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
    <section aria-label={title}>
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
    </section>
  );
}

/** The thresholds in force, with what the server knows of them. */
function thresholdsOf(
  row: IRuleRow,
  info: { readonly thresholds: ReadonlyArray<IThreshold> } | undefined
): ReadonlyArray<IThreshold> {
  const given = Object.keys(row.state?.parameters ?? {});
  return (info?.thresholds ?? []).filter(
    ({ name }) => given.length === 0 || given.includes(name)
  );
}

/** The threshold that the server did not take, if that is why it did not check. */
function refusedOf(
  row: IRuleRow,
  thresholds: ReadonlyArray<IThreshold>,
  recheck: RecheckModel
): IThreshold | undefined {
  return recheck.state === 'failed'
    ? thresholds.find(({ name }) =>
        recheck.message.startsWith(parameter(row, name))
      )
    : undefined;
}

/** Why there was no check, with a threshold called as its field is. */
function refusalOf(
  row: IRuleRow,
  thresholds: ReadonlyArray<IThreshold>,
  recheck: RecheckModel
): string {
  const refused = refusedOf(row, thresholds, recheck);
  return refused
    ? recheck.message.replace(
        parameter(row, refused.name),
        () => `${humanize(refused.name)} `
      )
    : recheck.message;
}

/** How the server begins what it says of a threshold. */
function parameter(row: IRuleRow, name: string): string {
  return `${row.rule}.${name} `;
}

/** The value of a threshold in force. */
function valueOf(row: IRuleRow, name: string): WireNumber | boolean {
  const value = row.state?.parameters[name];
  return typeof value === 'number' ||
    typeof value === 'string' ||
    typeof value === 'boolean'
    ? value
    : null;
}
