/**
 * A list of rows of equal height of which only those in sight exist, however many there are.
 */
import * as React from 'react';

/** First row (inclusive) and last row (exclusive) to render. */
export function rowsInSight(
  scrollTop: number,
  height: number,
  rowHeight: number,
  count: number,
  overscan = 6
): readonly [number, number] {
  const first = Math.floor(scrollTop / rowHeight) - overscan;
  const last = Math.ceil((scrollTop + height) / rowHeight) + overscan;
  const end = Math.min(Math.max(last, 0), count);
  return [Math.min(Math.max(first, 0), end), end];
}

/** Properties of the list. */
export interface IWindowedRowsProps<T> {
  readonly items: ReadonlyArray<T>;
  /** Height of every row, px. */
  readonly rowHeight: number;
  /** What identifies an item. */
  readonly keyOf: (item: T) => string;
  /** Content of a row. */
  readonly render: (
    item: T,
    state: { readonly focused: boolean }
  ) => JSX.Element;
  /** Attributes of a row: class, aria and data. */
  readonly rowProps?: (
    item: T,
    index: number
  ) => React.HTMLAttributes<HTMLDivElement>;
  readonly role: 'listbox' | 'tree';
  readonly label: string;
  readonly className?: string;
  /** Key of the item to scroll to when it changes. */
  readonly reveal?: string | null;
  /** Key of the item that is being edited: it is scrolled to, however often that begins. */
  readonly edited?: string | null;
  /** A row was chosen: by a click or by Enter. */
  readonly onActivate: (item: T, event: React.UIEvent) => void;
  /** A row was double-clicked. */
  readonly onDoubleClick?: (item: T) => void;
  /** Another key was pressed; answer true when it was used, or the item that the focus moves to. */
  readonly onKey?: (item: T, event: React.KeyboardEvent) => boolean | T;
  /** What a row begins with: a letter moves the focus to the next one that begins with it. */
  readonly textOf?: (item: T) => string;
  /** Whether several rows may be chosen at once. */
  readonly several?: boolean;
}

/**
 * The list. The arrow keys, Home, End and the page keys move the focus; the focus is the list's,
 * the focused row is told to assistive technology by `aria-activedescendant`.
 */
export function WindowedRows<T>(props: IWindowedRowsProps<T>): JSX.Element {
  const { items, rowHeight, keyOf } = props;
  const node = React.useRef<HTMLDivElement>(null);
  const id = React.useId();
  const [scrollTop, setScrollTop] = React.useState(0);
  const [height, setHeight] = React.useState(0);
  const [focusKey, setFocusKey] = React.useState<string | null>(null);

  React.useLayoutEffect(() => {
    const list = node.current;
    if (!list) {
      return;
    }
    setHeight(list.clientHeight);
    if (typeof ResizeObserver === 'undefined') {
      return;
    }
    const observer = new ResizeObserver(() => setHeight(list.clientHeight));
    observer.observe(list);
    return () => observer.disconnect();
  }, []);

  const scrollTo = (index: number): void => {
    const list = node.current;
    if (!list || index < 0) {
      return;
    }
    const top = index * rowHeight;
    if (top < list.scrollTop) {
      list.scrollTop = top;
    } else if (top + rowHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = top + rowHeight - list.clientHeight;
    }
    setScrollTop(list.scrollTop);
  };

  const indexOf = (key: string | null | undefined): number =>
    key === null || key === undefined
      ? -1
      : items.findIndex(item => keyOf(item) === key);

  React.useEffect(() => scrollTo(indexOf(props.reveal)), [props.reveal]);
  React.useEffect(() => scrollTo(indexOf(props.edited)), [props.edited]);

  const focusRow = (index: number): void => {
    if (items.length > 0) {
      const clamped = Math.min(Math.max(index, 0), items.length - 1);
      setFocusKey(keyOf(items[clamped]));
      scrollTo(clamped);
    }
  };

  const onKeyDown = (event: React.KeyboardEvent<HTMLElement>): void => {
    if (event.target !== node.current || items.length === 0) {
      return;
    }
    const index = indexOf(focusKey);
    const used = index >= 0 && (props.onKey?.(items[index], event) ?? false);
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const moves: { [key: string]: number } = {
      ArrowDown: index + 1,
      ArrowUp: index - 1,
      Home: 0,
      End: items.length - 1,
      PageDown: index + page,
      PageUp: index - page
    };
    if (used !== false) {
      event.preventDefault();
      if (used !== true) {
        focusRow(items.indexOf(used));
      }
    } else if (event.key in moves) {
      event.preventDefault();
      focusRow(moves[event.key]);
    } else if (index >= 0 && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      props.onActivate(items[index], event);
    } else if (
      index >= 0 &&
      (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey))
    ) {
      event.preventDefault();
      openContextMenu(document.getElementById(`${id}-${focusKey}`));
      comeBack(event.currentTarget);
    } else if (isLetter(event)) {
      const found = nextWith(event.key, index);
      if (found >= 0) {
        event.preventDefault();
        focusRow(found);
      }
    }
  };

  /** Index of the first row after `index` that begins with a letter, beginning anew at the end; -1 if none. */
  const nextWith = (letter: string, index: number): number => {
    const begins = (item: T): boolean =>
      props.textOf?.(item).toLowerCase().startsWith(letter.toLowerCase()) ??
      false;
    const after = items.findIndex((item, i) => i > index && begins(item));
    return after >= 0 ? after : items.findIndex(begins);
  };

  const [first, last] = rowsInSight(scrollTop, height, rowHeight, items.length);
  const focused = indexOf(focusKey);
  return (
    <div
      ref={node}
      className={`jp-TdbgRows ${props.className ?? ''}`}
      role={props.role}
      aria-label={props.label}
      aria-multiselectable={props.several}
      aria-activedescendant={
        focused >= first && focused < last ? `${id}-${focusKey}` : undefined
      }
      tabIndex={0}
      onScroll={event => setScrollTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
      onFocus={event => {
        // A press on a row must not move the rows away from under the pointer.
        const byKey = event.currentTarget.matches(':focus-visible');
        if (event.target === node.current && focused < 0 && byKey) {
          const current = indexOf(props.reveal);
          focusRow(Math.max(current, 0));
        }
      }}
    >
      <div
        className="jp-TdbgRows-content"
        role="presentation"
        style={{ height: items.length * rowHeight }}
      >
        {items.slice(first, last).map((item, i) => {
          const key = keyOf(item);
          const index = first + i;
          const extra = props.rowProps?.(item, index) ?? {};
          return (
            <div
              key={key}
              aria-posinset={index + 1}
              aria-setsize={items.length}
              {...extra}
              id={`${id}-${key}`}
              className={`jp-TdbgRows-row ${extra.className ?? ''}${
                key === focusKey ? ' jp-mod-focused' : ''
              }`}
              role={props.role === 'tree' ? 'treeitem' : 'option'}
              style={{ top: index * rowHeight, height: rowHeight }}
              onClick={event => {
                setFocusKey(key);
                props.onActivate(item, event);
              }}
              onContextMenu={() => setFocusKey(key)}
              onDoubleClick={() => props.onDoubleClick?.(item)}
            >
              {props.render(item, { focused: key === focusKey })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Whether a key writes a letter, and is no shortcut. */
function isLetter(event: React.KeyboardEvent): boolean {
  const { key, ctrlKey, metaKey, altKey } = event;
  return key.length === 1 && key !== ' ' && !ctrlKey && !metaKey && !altKey;
}

/** Open the context menu of `row`, as the mouse would. */
function openContextMenu(row: HTMLElement | null): void {
  const box = row?.getBoundingClientRect();
  if (row && box) {
    row.dispatchEvent(
      new MouseEvent('contextmenu', {
        bubbles: true,
        cancelable: true,
        clientX: box.left + 24,
        clientY: box.bottom
      })
    );
  }
}

/** Give `list` the focus again when the menu that takes it goes, and nothing else has it. */
function comeBack(list: HTMLElement): void {
  const menu = document.querySelector('.lm-Menu');
  if (!menu) {
    return;
  }
  const observer = new MutationObserver(() => {
    if (!menu.isConnected) {
      observer.disconnect();
      if (document.activeElement === document.body) {
        list.focus();
      }
    }
  });
  observer.observe(document.body, { childList: true });
}
