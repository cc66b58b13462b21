/**
 * One control for one parameter of a view.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import type {
  IRunSummary,
  ITensorInfo,
  IViewParam,
  ParamValue
} from '../../api/wire';
import { choicesOf, clamp, matchingTensors } from '../../model/params';
import { isolated } from '../name';
import { RunsPicker } from '../picker/runs';
import { TensorPicker } from '../picker/tensors';

/** Properties of a control. */
export interface IParamProps {
  readonly param: IViewParam;
  readonly value: ParamValue | undefined;
  readonly tensors: ReadonlyArray<ITensorInfo>;
  /** The runs there are, but for the one that is shown. */
  readonly runs: ReadonlyArray<IRunSummary>;
  readonly trans: TranslationBundle;
  readonly onChange: (value: ParamValue) => void;
}

/** The control that suits the kind of the parameter. */
export function ParamControl(props: IParamProps): JSX.Element {
  const { param, value, trans, onChange } = props;
  const common = {
    'aria-label': param.label,
    title: param.help || param.label
  };
  switch (param.kind) {
    case 'tensor':
    case 'tensors':
      return (
        <TensorPicker
          label={param.label}
          help={param.help}
          tensors={matchingTensors(param, props.tensors)}
          value={names(value)}
          several={param.kind === 'tensors'}
          trans={trans}
          onChange={chosen =>
            onChange(
              param.kind === 'tensors'
                ? chosen.length > 0
                  ? chosen
                  : null
                : chosen[0]
            )
          }
        />
      );
    case 'choice':
      return (
        <HTMLSelect
          {...common}
          className="jp-TdbgSelect"
          value={String(value ?? '')}
          options={[
            ...(param.default === null
              ? [{ value: '', label: trans.__('%1: automatic', param.label) }]
              : []),
            ...choicesOf(param).map(([choice, label]) => ({
              value: String(choice),
              label
            }))
          ]}
          onChange={event => {
            const chosen = param.choices.find(
              choice => String(choice) === event.target.value
            );
            onChange(chosen ?? null);
          }}
        />
      );
    case 'run':
      return (
        <HTMLSelect
          {...common}
          className="jp-TdbgSelect"
          value={String(value ?? '')}
          options={[
            { value: '', label: trans.__('%1: choose a run', param.label) },
            ...runChoices(props.runs, String(value ?? ''))
          ]}
          onChange={event => onChange(event.target.value || null)}
        />
      );
    case 'runs':
      return (
        <RunsPicker
          label={param.label}
          help={param.help}
          runs={props.runs}
          most={param.maximum ?? Infinity}
          value={names(value)}
          trans={trans}
          onChange={ids => onChange(ids.length > 0 ? ids : null)}
        />
      );
    case 'bool':
      return (
        <input
          {...common}
          type="checkbox"
          checked={value === true}
          onChange={event => onChange(event.target.checked)}
        />
      );
    case 'int':
    case 'float':
    case 'step':
      return (
        <TypedInput
          {...common}
          value={typeof value === 'number' ? String(value) : ''}
          placeholder={param.default === null ? trans.__('automatic') : ''}
          parse={text => parseNumber(text, param)}
          onChange={onChange}
          trans={trans}
        />
      );
    case 'range':
    case 'seconds':
      return <RangeInput {...props} />;
    case 'steps':
      return (
        <TypedInput
          {...common}
          value={Array.isArray(value) ? value.join(', ') : ''}
          placeholder={trans.__('automatic')}
          parse={parseSteps}
          onChange={onChange}
          trans={trans}
        />
      );
    case 'regex':
    case 'text':
      return (
        <TypedInput
          {...common}
          value={typeof value === 'string' ? value : ''}
          placeholder={
            param.kind === 'regex' ? trans.__('regular expression') : ''
          }
          parse={text => (param.kind === 'regex' ? parseRegex(text) : text)}
          onChange={onChange}
          trans={trans}
        />
      );
  }
}

/** Properties of a text field. */
interface ITypedInputProps {
  readonly value: string;
  readonly placeholder: string;
  readonly title: string;
  readonly 'aria-label': string;
  readonly trans: TranslationBundle;
  /** The value that the text stands for; undefined when it stands for none. */
  readonly parse: (text: string) => ParamValue | undefined;
  readonly onChange: (value: ParamValue) => void;
}

/** A text field whose value counts on Enter or when left, if it means something. */
function TypedInput(props: ITypedInputProps): JSX.Element {
  const [text, setText] = React.useState(props.value);
  React.useEffect(() => setText(props.value), [props.value]);
  const parsed = props.parse(text);
  const commit = (): void => {
    if (text !== props.value && parsed !== undefined) {
      props.onChange(parsed);
    }
  };
  return (
    <input
      type="text"
      className="jp-TdbgInput"
      spellCheck={false}
      aria-label={props['aria-label']}
      aria-invalid={parsed === undefined}
      title={
        parsed === undefined ? props.trans.__('Not understood') : props.title
      }
      placeholder={props.placeholder}
      value={text}
      onChange={event => setText(event.target.value)}
      onBlur={commit}
      onKeyDown={event => {
        if (event.key === 'Enter') {
          commit();
        }
      }}
    />
  );
}

/** From and to; either may be empty. */
function RangeInput(props: IParamProps): JSX.Element {
  const { param, value, trans, onChange } = props;
  const pair: ReadonlyArray<unknown> = Array.isArray(value) ? value : [];
  const ends = [0, 1].map(i =>
    typeof pair[i] === 'number' ? (pair[i] as number) : null
  );
  const set = (i: number, end: ParamValue): void => {
    const next = [...ends];
    next[i] = typeof end === 'number' ? end : null;
    onChange(next.every(part => part === null) ? null : next);
  };
  const labels = [
    trans.__('%1: from', param.label),
    trans.__('%1: to', param.label)
  ];
  return (
    <span className="jp-TdbgRange">
      {ends.map((end, i) => (
        <TypedInput
          key={i}
          aria-label={labels[i]}
          title={param.help || labels[i]}
          value={end === null ? '' : String(end)}
          placeholder={i === 0 ? trans.__('first') : trans.__('last')}
          parse={text => parseNumber(text, param)}
          onChange={part => set(i, part)}
          trans={trans}
        />
      ))}
    </span>
  );
}

/** Most runs in a menu: nobody reads more. */
const MOST_RUNS = 300;

/** Value and text of the runs to choose among, newest first; the chosen one always is among them. */
export function runChoices(
  runs: ReadonlyArray<IRunSummary>,
  chosen: string
): Array<{ readonly value: string; readonly label: string }> {
  const often = new Map<string, number>();
  runs.forEach(({ name }) => often.set(name, (often.get(name) ?? 0) + 1));
  const offered = runs.filter(
    ({ id }, index) => index < MOST_RUNS || id === chosen
  );
  const choices = offered.map(({ id, name, path }) => ({
    value: id,
    label:
      (often.get(name) ?? 0) > 1
        ? `${isolated(name)} (${isolated(path)})`
        : name
  }));
  return !chosen || choices.some(({ value }) => value === chosen)
    ? choices
    : [...choices, { value: chosen, label: chosen }];
}

function names(value: ParamValue | undefined): ReadonlyArray<string> {
  return Array.isArray(value)
    ? value.map(String)
    : typeof value === 'string' && value
      ? [value]
      : [];
}

function parseNumber(text: string, param: IViewParam): ParamValue | undefined {
  if (text.trim() === '') {
    return null;
  }
  const number = Number(text);
  const whole = param.kind === 'int' || param.kind === 'step';
  return Number.isFinite(number) && (!whole || Number.isInteger(number))
    ? clamp(number, param)
    : undefined;
}

function parseSteps(text: string): ParamValue | undefined {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  const steps = parts.map(Number);
  return steps.every(step => Number.isInteger(step) && step >= 0)
    ? steps.length > 0
      ? steps
      : null
    : undefined;
}

/** JavaScript's idea of a regular expression is close enough to Python's to catch slips. */
function parseRegex(text: string): ParamValue | undefined {
  if (text === '') {
    return null;
  }
  try {
    new RegExp(text.replace(/^\(\?[aiLmsux]+\)/, ''));
    return text;
  } catch {
    return undefined;
  }
}
