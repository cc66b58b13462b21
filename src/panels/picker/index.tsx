/**
 * Choosing one tensor, or several, among thousands.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownEmptyIcon, checkIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ITensorInfo } from '../../api/wire';
import { formatShape } from '../../model/format';
import { Popover } from '../popover';
import { WindowedRows } from '../window/rows';

/** Height of a row, px. */
const ROW_HEIGHT = 24;

/** Properties of the picker. */
export interface IPickerProps {
  readonly label: string;
  readonly help?: string;
  readonly tensors: ReadonlyArray<ITensorInfo>;
  /** Names chosen. */
  readonly value: ReadonlyArray<string>;
  /** Whether several may be chosen. */
  readonly several: boolean;
  readonly trans: TranslationBundle;
  readonly onChange: (names: ReadonlyArray<string>) => void;
}

/** A button with the choice; below it a search over all tensors that fit. */
export function TensorPicker(props: IPickerProps): JSX.Element {
  const { value, trans } = props;
  const text =
    value.length === 1
      ? value[0]
      : value.length === 0
        ? trans.__('%1: automatic', props.label)
        : trans._n('%1 tensor', '%1 tensors', value.length);
  return (
    <Popover
      label={trans.__('%1: %2', props.label, text)}
      title={props.help ? `${text}\n${props.help}` : text}
      popup="listbox"
      className="jp-TdbgPicker"
      buttonClass="jp-TdbgPicker-button"
      button={
        <>
          <span className="jp-TdbgPicker-text">{text}</span>
          <caretDownEmptyIcon.react
            tag="span"
            className="jp-TdbgPicker-caret"
          />
        </>
      }
      render={close => <Choices {...props} close={close} />}
    />
  );
}

/** Search and list. */
function Choices(
  props: IPickerProps & { readonly close: () => void }
): JSX.Element {
  const { tensors, value, several, trans } = props;
  const [filter, setFilter] = React.useState('');
  const [chosen, setChosen] = React.useState(value);
  const found = React.useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return tensors.filter(({ name, kind }) => {
      const text = `${name} ${kind}`.toLowerCase();
      return words.every(word => text.includes(word));
    });
  }, [tensors, filter]);

  const choose = (tensor: ITensorInfo): void => {
    if (!several) {
      props.onChange([tensor.name]);
      props.close();
      return;
    }
    const next = chosen.includes(tensor.name)
      ? chosen.filter(name => name !== tensor.name)
      : [...chosen, tensor.name];
    setChosen(next);
    props.onChange(next);
  };
  const chosenNow = several ? chosen : value;

  return (
    <>
      <input
        type="search"
        className="jp-TdbgPicker-search"
        placeholder={trans._n(
          'Search %1 tensor',
          'Search %1 tensors',
          tensors.length
        )}
        aria-label={trans.__('Search tensors')}
        value={filter}
        onChange={event => setFilter(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter' && found.length > 0 && !several) {
            choose(found[0]);
          } else if (event.key === 'ArrowDown') {
            event.preventDefault();
            event.currentTarget.parentElement
              ?.querySelector<HTMLElement>('.jp-TdbgRows')
              ?.focus();
          }
        }}
      />
      {several && chosen.length > 0 && (
        <button
          className="jp-TdbgLink"
          onClick={() => {
            setChosen([]);
            props.onChange([]);
          }}
        >
          {trans.__('Clear the choice')}
        </button>
      )}
      {found.length === 0 ? (
        <div className="jp-TdbgPicker-none">
          {trans.__('No tensor matches')}
        </div>
      ) : (
        <WindowedRows
          items={found}
          rowHeight={ROW_HEIGHT}
          keyOf={tensor => tensor.name}
          role="listbox"
          several={several}
          label={props.label}
          reveal={chosenNow[0] ?? null}
          onActivate={choose}
          rowProps={tensor => ({
            className: 'jp-TdbgPicker-item',
            'aria-selected': chosenNow.includes(tensor.name),
            title: tensor.name
          })}
          render={tensor => (
            <>
              <span className="jp-TdbgPicker-check">
                {chosenNow.includes(tensor.name) && (
                  <checkIcon.react tag="span" />
                )}
              </span>
              <span className="jp-TdbgPicker-name">{tensor.name}</span>
              <span className="jp-TdbgLayers-shape">
                {formatShape(tensor.shape)}
              </span>
            </>
          )}
        />
      )}
    </>
  );
}
