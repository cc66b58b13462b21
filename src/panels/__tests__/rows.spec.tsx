import * as React from 'react';
import { act } from 'react';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { WindowedRows, rowsInSight } from '../window/rows';

describe('rowsInSight()', () => {
  it('covers what is in sight, some more, and nothing beyond the list', () => {
    expect(rowsInSight(0, 100, 20, 1000, 2)).toEqual([0, 7]);
    expect(rowsInSight(2000, 100, 20, 1000, 2)).toEqual([98, 107]);
    expect(rowsInSight(19_900, 100, 20, 1000, 2)).toEqual([993, 1000]);
    expect(rowsInSight(5000, 100, 20, 3, 2)).toEqual([3, 3]);
    expect(rowsInSight(0, 100, 20, 0)).toEqual([0, 0]);
  });
});

describe('WindowedRows', () => {
  const items = Array.from({ length: 5000 }, (_, i) => `item ${i}`);
  const onActivate = vi.fn();
  let host: HTMLElement;
  let root: Root;
  const list = (): HTMLElement =>
    host.querySelector<HTMLElement>('[role="listbox"]') as HTMLElement;
  const press = (key: string): void => {
    act(() => {
      list().dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })
      );
    });
  };
  const focused = (): string | null | undefined =>
    document.getElementById(list().getAttribute('aria-activedescendant') ?? '')
      ?.textContent;

  const draw = (edited: string | null = null): void => {
    act(() => {
      root.render(
        <WindowedRows
          items={items}
          rowHeight={20}
          keyOf={item => item}
          render={item => <span>{item}</span>}
          role="listbox"
          label="Things"
          reveal="item 100"
          edited={edited}
          onActivate={onActivate}
        />
      );
    });
  };

  beforeEach(() => {
    (
      globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
    ).IS_REACT_ACT_ENVIRONMENT = true;
    onActivate.mockReset();
    // jsdom lays nothing out.
    vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(200);
    host = document.createElement('div');
    document.body.appendChild(host);
    root = createRoot(host);
    draw();
  });
  afterEach(() => {
    act(() => root.unmount());
    host.remove();
    vi.restoreAllMocks();
  });

  it('has the focus again when the menu of a row is closed', async () => {
    const menu = document.createElement('div');
    menu.className = 'lm-Menu';
    menu.tabIndex = 0;
    list().addEventListener('contextmenu', () => {
      document.body.appendChild(menu);
      menu.focus();
    });
    list().focus();
    press('Home');
    press('ContextMenu');
    expect(document.activeElement).toBe(menu);
    menu.remove();
    await vi.waitFor(() => expect(document.activeElement).toBe(list()));
    // Unless the menu opened something that has it.
    press('ContextMenu');
    const input = host.appendChild(document.createElement('input'));
    menu.remove();
    input.focus();
    await Promise.resolve();
    expect(document.activeElement).toBe(input);
  });

  it('renders only what is in sight, in a box as high as all', () => {
    expect(list().querySelectorAll('[role="option"]').length).toBeLessThan(30);
    const content = list().firstElementChild as HTMLElement;
    expect(content.style.height).toBe('100000px');
  });

  it('shows the row that is edited, whatever was scrolled to before', () => {
    press('End');
    draw('item 100');
    expect(list().scrollTop).toBe(2000);
    draw();
    press('End');
    draw('item 100');
    expect(list().scrollTop).toBe(2000);
  });

  it('moves its focus by the keys and follows it by scrolling', () => {
    press('ArrowDown');
    expect(focused()).toBe('item 0');
    press('ArrowDown');
    expect(focused()).toBe('item 1');
    press('End');
    expect(focused()).toBe('item 4999');
    expect(list().scrollTop).toBe(99_800);
    press('PageUp');
    expect(focused()).toBe('item 4990');
    press('Home');
    expect(focused()).toBe('item 0');
  });

  it('activates by Enter and by a click', () => {
    press('ArrowDown');
    press('Enter');
    expect(onActivate.mock.calls[0][0]).toBe('item 0');
    act(() => {
      list()
        .querySelectorAll<HTMLElement>('[role="option"]')[3]
        .dispatchEvent(new MouseEvent('click', { bubbles: true }));
    });
    expect(onActivate.mock.calls[1][0]).toBe('item 3');
  });

  it('tells the place of a row among all, not among those in sight', () => {
    const row = list().querySelector('[role="option"]');
    expect(row?.getAttribute('aria-setsize')).toBe('5000');
    expect(Number(row?.getAttribute('aria-posinset'))).toBeGreaterThan(50);
  });
});
