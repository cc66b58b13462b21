import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { summary } from '../../api/__tests__/fake';
import type { IRunSummary } from '../../api/wire';
import { RunsPicker } from '../picker/runs';

describe('RunsPicker', () => {
  const runs: ReadonlyArray<IRunSummary> = Array.from({ length: 20 }, (_, i) =>
    summary({
      id: `run${i}`,
      name: `run ${i}`,
      path: `sweep/run${i}`,
      tags: i === 7 ? ['best'] : []
    })
  );
  const chosen = vi.fn<(ids: ReadonlyArray<string>) => void>();
  let place: HTMLElement;
  let root: Root;
  const show = (value: ReadonlyArray<string>): Promise<void> =>
    act(async () =>
      root.render(
        <RunsPicker
          label="Other runs"
          runs={runs}
          most={15}
          value={value}
          trans={nullTranslator.load('tdbg_lab')}
          onChange={chosen}
        />
      )
    );
  const press = (node: Element | null | undefined): Promise<void> =>
    act(async () => {
      node?.dispatchEvent(new Event('pointerdown', { bubbles: true }));
      node?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    });
  const button = (): HTMLElement | null =>
    place.querySelector('.jp-TdbgPicker-button');
  const rows = (): ReadonlyArray<Element> => [
    ...document.querySelectorAll('.jp-TdbgPicker-item')
  ];
  const search = (text: string): Promise<void> =>
    act(async () => {
      const input = document.querySelector<HTMLInputElement>(
        '.jp-TdbgPicker-search'
      );
      Object.getOwnPropertyDescriptor(
        HTMLInputElement.prototype,
        'value'
      )?.set?.call(input, text);
      input?.dispatchEvent(new Event('input', { bubbles: true }));
    });

  beforeEach(() => {
    chosen.mockClear();
    place = document.body.appendChild(document.createElement('div'));
    root = createRoot(place);
  });
  afterEach(async () => {
    await act(async () => root.unmount());
    place.remove();
  });

  it('adds and takes away runs while it stays open', async () => {
    await show([]);
    expect(button()?.textContent).toBe('Other runs: choose');
    await press(button());
    await press(rows()[0]);
    await press(rows()[1]);
    await press(rows()[0]);
    expect(chosen.mock.calls.map(([ids]) => ids)).toEqual([
      ['run0'],
      ['run0', 'run1'],
      ['run1']
    ]);
    await show(['run1']);
    expect(button()?.textContent).toBe('run 1');
  });

  it('finds runs by folder and tag', async () => {
    await show([]);
    await press(button());
    await search('best');
    expect(rows().map(row => row.textContent)).toEqual(['run 7sweep/run7']);
    await search('sweep/run1 1');
    expect(rows().length).toBeGreaterThan(1);
    await search('nothing');
    expect(document.querySelector('.jp-TdbgPicker-none')?.textContent).toBe(
      'No run matches'
    );
  });

  const add = (): Element | undefined =>
    [...document.querySelectorAll('.jp-TdbgLink')].find(({ textContent }) =>
      textContent?.startsWith('Add')
    );

  it('adds all that a search has found', async () => {
    await show([]);
    await press(button());
    await search('run1');
    await press(rows()[0]);
    expect(add()?.textContent).toBe('Add all 10');
    await press(add());
    expect(chosen.mock.lastCall?.[0].length).toBe(11);
    expect(add()).toBeUndefined();
    expect(document.activeElement?.className).toBe('jp-TdbgPicker-search');
    await search('');
    expect(add()?.textContent).toBe('Add the first 4 of 9');
    await press(add());
    expect(chosen.mock.lastCall?.[0]).toHaveLength(15);
    expect(add()).toBeUndefined();
  });

  it('takes no more runs than can be told apart', async () => {
    await show(runs.slice(0, 15).map(({ id }) => id));
    expect(button()?.textContent).toBe('15 runs');
    await press(button());
    expect(document.querySelector('[role="status"]')?.textContent).toBe(
      'No more than 15: take one away first'
    );
    await search('run 19');
    await press(rows()[0]);
    expect(chosen).not.toHaveBeenCalled();
    await search('run 3');
    await press(rows()[0]);
    expect(chosen.mock.calls[0][0].length).toBe(14);
    expect(document.querySelector('[role="status"]')).toBeNull();
  });
});
