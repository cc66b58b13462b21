/**
 * Choosing one thing, or several, among thousands.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownEmptyIcon, checkIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { Popover } from '../popover';
import { WindowedRows } from '../window/rows';

/** Height of a row, px. */
const ROW_HEIGHT = 24;
/** Most that are added by one click. */
const MOST_AT_ONCE = 100;

/** Something to choose. */
export interface IPickerItem {
  /** What stands for it in the choice. */
  readonly key: string;
  readonly name: string;
  /** Beside the name, fainter; searched, too. */
  readonly detail: string;
  /** Further words by which it is found. */
  readonly words?: string;
}

/** What the picker says. */
export interface IPickerWords {
  /** On the button while nothing is chosen, and with several. */
  readonly none: string;
  readonly many: (n: number) => string;
  /** In the search, and its name. */
  readonly search: (n: number) => string;
  readonly searchLabel: string;
  /** Where nothing matches. */
  readonly noMatch: string;
  /** Where no more can be chosen. */
  readonly full?: string;
}

/** Properties of the picker. */
export interface IItemPickerProps {
  readonly label: string;
  readonly help?: string;
  readonly items: ReadonlyArray<IPickerItem>;
  /** Keys chosen. */
  readonly value: ReadonlyArray<string>;
  /** Whether several may be chosen. */
  readonly several: boolean;
  /** How many at most; what is beyond cannot be chosen. */
  readonly most?: number;
  readonly words: IPickerWords;
  readonly trans: TranslationBundle;
  readonly onChange: (keys: ReadonlyArray<string>) => void;
}

/** A button with the choice; below it a search over everything there is. */
export function ItemPicker(props: IItemPickerProps): JSX.Element {
  const { items, value, words, trans } = props;
  const text =
    value.length === 0
      ? words.none
      : value.length === 1
        ? (items.find(({ key }) => key === value[0])?.name ?? value[0])
        : words.many(value.length);
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
  props: IItemPickerProps & { readonly close: () => void }
): JSX.Element {
  const { items, value, several, words, trans } = props;
  const most = props.most ?? Infinity;
  const [filter, setFilter] = React.useState('');
  const [chosen, setChosen] = React.useState(value);
  const found = React.useMemo(() => {
    const asked = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return items.filter(item => {
      const text =
        `${item.name} ${item.detail} ${item.words ?? ''}`.toLowerCase();
      return asked.every(word => text.includes(word));
    });
  }, [items, filter]);

  const take = (next: ReadonlyArray<string>): void => {
    setChosen(next);
    props.onChange(next);
  };
  const search = React.useRef<HTMLInputElement>(null);
  /** By a button that may go: the keyboard stays in the picker. */
  const takeAtOnce = (next: ReadonlyArray<string>): void => {
    take(next);
    search.current?.focus();
  };
  const choose = ({ key }: IPickerItem): void => {
    if (!several) {
      props.onChange([key]);
      props.close();
      return;
    }
    const next = chosen.includes(key)
      ? chosen.filter(one => one !== key)
      : [...chosen, key];
    if (next.length <= most) {
      take(next);
    }
  };
  const chosenNow = several ? chosen : value;
  const rest = found.map(({ key }) => key).filter(key => !chosen.includes(key));
  const added = rest.slice(0, Math.min(most - chosen.length, MOST_AT_ONCE));

  return (
    <>
      <input
        ref={search}
        type="search"
        className="jp-TdbgPicker-search"
        placeholder={words.search(items.length)}
        aria-label={words.searchLabel}
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
      {chosen.length >= most && (
        <div className="jp-TdbgPicker-none" role="status">
          {words.full}
        </div>
      )}
      {several && added.length > 1 && (
        <button
          className="jp-TdbgLink"
          onClick={() => takeAtOnce([...chosen, ...added])}
        >
          {added.length < rest.length
            ? trans.__('Add the first %1 of %2', added.length, rest.length)
            : trans.__('Add all %1', added.length)}
        </button>
      )}
      {several && chosen.length > 0 && (
        <button className="jp-TdbgLink" onClick={() => takeAtOnce([])}>
          {trans.__('Clear the choice')}
        </button>
      )}
      {found.length === 0 ? (
        <div className="jp-TdbgPicker-none">{words.noMatch}</div>
      ) : (
        <WindowedRows
          items={found}
          rowHeight={ROW_HEIGHT}
          keyOf={item => item.key}
          role="listbox"
          several={several}
          label={props.label}
          reveal={chosenNow[0] ?? null}
          onActivate={choose}
          rowProps={({ key, name }) => ({
            className: 'jp-TdbgPicker-item',
            'aria-selected': chosenNow.includes(key),
            title: name
          })}
          render={({ key, name, detail }) => (
            <>
              <span className="jp-TdbgPicker-check">
                {chosenNow.includes(key) && <checkIcon.react tag="span" />}
              </span>
              <span className="jp-TdbgPicker-name">{name}</span>
              <span className="jp-TdbgLayers-shape">{detail}</span>
            </>
          )}
        />
      )}
    </>
  );
}
