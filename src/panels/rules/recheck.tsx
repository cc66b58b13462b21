/**
 * The thresholds of the chosen rule, to be changed and tried on what was recorded.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IThresholds, IThreshold, WireNumber } from '../../api/wire';
import { humanize } from '../../model/params';
import type { RecheckModel } from '../../model/recheck';
import type { IRuleRow } from '../../model/rules';
import { showOpened } from '../opened';
import { useSignals } from '../signals';
import { RecheckAnswer } from './recheckAnswer';
import { refusedOf } from './refusal';
import type { IRulesProps } from './table';

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
      onToggle={recheck.state === 'idle' ? showOpened : undefined}
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
      <RecheckAnswer
        {...props}
        row={row}
        thresholds={thresholds}
        recheck={recheck}
      />
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
              {helpOf(one, thresholds)}
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

/** What a threshold means; others are called in it as their fields are. */
function helpOf(
  { help }: IThreshold,
  thresholds: ReadonlyArray<IThreshold>
): string {
  return help.replace(/`(\w+)`/g, (code: string, name: string) =>
    thresholds.some(one => one.name === name) ? humanize(name) : code
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

/** The value of a threshold in force. */
function valueOf(row: IRuleRow, name: string): WireNumber | boolean {
  const value = row.state?.parameters[name];
  return typeof value === 'number' ||
    typeof value === 'string' ||
    typeof value === 'boolean'
    ? value
    : null;
}
