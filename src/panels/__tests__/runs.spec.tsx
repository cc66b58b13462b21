import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  FakeServer,
  FakeStream,
  settle,
  summary
} from '../../api/__tests__/fake';
import { CommandIDs } from '../../commands';
import { TdbgService } from '../../model/service';
import { RunsBody } from '../runs/body';

describe('RunsBody', () => {
  let client: FakeServer;
  let service: TdbgService;
  let body: RunsBody;
  let commands: CommandRegistry;
  const show = async (): Promise<void> => {
    commands = new CommandRegistry();
    body = new RunsBody({
      service,
      commands,
      trans: nullTranslator.load('tdbg_lab')
    });
    await act(async () => {
      Widget.attach(body, document.body);
      await service.refresh();
      await settle();
    });
  };

  beforeEach(() => {
    client = new FakeServer();
    service = new TdbgService({ client, stream: new FakeStream() });
  });
  afterEach(async () => {
    await act(async () => body.dispose());
    service.dispose();
  });

  it('has no control within the row of a run, which is one itself', async () => {
    client.list = [summary()];
    await show();
    const rows = [...body.node.querySelectorAll('[role="option"]')];
    expect(rows.map(row => row.querySelectorAll('button').length)).toEqual([0]);
  });

  it.each([true, false])(
    'says that runs may be missing where the server does not look at all folders: %s',
    async isTruncated => {
      client.isTruncated = isTruncated;
      await show();
      expect(body.node.textContent?.includes('TdbgApp.run_roots')).toBe(
        isTruncated
      );
    }
  );

  it('names a folder of runs that the server cannot read', async () => {
    const note = (): string =>
      body.node.querySelector('.jp-TdbgRuns-note')?.textContent ?? '';
    await show();
    expect(note()).toBe('');
    await act(async () => service.runs.setAll([], { unread: ['mounted'] }));
    expect(note()).toContain('TdbgApp.run_roots cannot be read now: mounted.');
  });

  it('chooses several runs by mouse and keys, and does one thing with all of them', async () => {
    client.list = [...'abcd'].map((id, i) =>
      summary({ id, name: id, created_ns: 10 - i })
    );
    await show();
    const asked: unknown[] = [];
    vi.spyOn(commands, 'execute').mockImplementation(async (id, args) => {
      asked.push([id, args?.run ?? args?.runs]);
    });
    const list = body.node.querySelector<HTMLElement>('[role="listbox"]')!;
    const press = (key: string, more: KeyboardEventInit = {}): void =>
      act(() => {
        list.dispatchEvent(
          new KeyboardEvent('keydown', { key, bubbles: true, ...more })
        );
      });
    const click = (id: string, more: MouseEventInit = {}): void =>
      act(() => {
        body.node
          .querySelector(`[data-tdbg-run="${id}"]`)!
          .dispatchEvent(new MouseEvent('click', { bubbles: true, ...more }));
      });
    const selected = (): string =>
      [...body.node.querySelectorAll<HTMLElement>('[aria-selected="true"]')]
        .map(row => row.dataset['tdbgRun'])
        .join('');
    const button = (name: string): HTMLButtonElement | undefined =>
      [...body.node.querySelectorAll('button')].find(
        node => (node.getAttribute('aria-label') ?? node.textContent) === name
      );

    expect(list.getAttribute('aria-multiselectable')).toBe('true');
    click('a');
    expect(asked.pop()).toEqual([CommandIDs.openRun, 'a']);
    expect(button('Compare')).toBeUndefined();
    click('b', { ctrlKey: true });
    click('d', { metaKey: true });
    expect(selected()).toBe('bd');
    expect(asked).toEqual([]); // none of them was opened
    act(() => button('Compare')!.click());
    expect(asked.pop()).toEqual([CommandIDs.compareRuns, ['b', 'd']]);
    press('Delete');
    expect(asked.pop()).toEqual([CommandIDs.deleteRun, ['b', 'd']]);
    act(() => button('Choose none')!.click());
    expect(document.activeElement).toBe(list);
    expect(selected()).toBe('');

    // Along the list: what Delete is about is what is chosen, or the one that has the focus.
    press('Home');
    press('ArrowDown', { shiftKey: true });
    press('ArrowDown', { shiftKey: true });
    expect(selected()).toBe('abc');
    press('ArrowUp', { shiftKey: true });
    expect(selected()).toBe('ab');
    press('ArrowDown');
    press('ArrowDown');
    press('Delete');
    expect(asked.pop()).toEqual([CommandIDs.deleteRun, 'd']);
    press('a', { ctrlKey: true });
    expect(selected()).toBe('abcd');
    press('Escape');
    expect(selected()).toBe('');
    press(' ', { ctrlKey: true });
    press('ArrowUp');
    press('Enter', { ctrlKey: true });
    expect(selected()).toBe('cd');
    press('Enter');
    expect(asked.pop()).toEqual([CommandIDs.openRun, 'c']);
    expect(selected()).toBe('');
  });
});
