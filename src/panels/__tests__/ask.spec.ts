import { nullTranslator } from '@jupyterlab/translation';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { askText } from '../ask';

const trans = nullTranslator.load('tdbg_lab');

const dialog = (): HTMLElement | null => document.querySelector('.jp-Dialog');
const field = (): HTMLTextAreaElement =>
  document.querySelector<HTMLTextAreaElement>('.jp-Dialog textarea')!;

/** Press Enter in the field; answers whether the browser may begin a line. */
function enter(held: KeyboardEventInit = {}): boolean {
  return field().dispatchEvent(
    new KeyboardEvent('keydown', {
      key: 'Enter',
      bubbles: true,
      cancelable: true,
      ...held
    })
  );
}

describe('askText', () => {
  // JupyterLab draws the parts of a dialog whenever it likes to.
  beforeEach(() => void vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', false));
  afterEach(() => {
    dialog()?.remove();
    vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  });

  it('asks for several lines, begins one by Enter, and saves by Ctrl and Enter', async () => {
    const save = vi.fn(() => Promise.resolve());
    const asked = askText(
      {
        title: 'Note on first',
        label: 'What to remember',
        text: 'one',
        isLong: true,
        okLabel: 'Save',
        save
      },
      trans
    );
    await vi.waitFor(() => expect(document.activeElement).toBe(field()));
    expect(field().labels?.[0].textContent).toBe('What to remember');
    const hint = field().getAttribute('aria-describedby')!;
    expect(document.getElementById(hint)?.textContent).toBe('Ctrl+Enter saves');
    expect(enter()).toBe(true);
    expect(dialog()).not.toBeNull();
    field().value = 'one\ntwo';
    expect(enter({ ctrlKey: true })).toBe(false);
    await asked;
    expect(save).toHaveBeenCalledWith('one\ntwo');
  });

  it('asks again with what was typed, and says why, where it could not be saved', async () => {
    const save = vi
      .fn<(text: string) => Promise<void>>()
      .mockRejectedValueOnce(new Error('Bad Gateway'))
      .mockResolvedValueOnce();
    const asked = askText(
      {
        title: 'Note',
        label: 'Note',
        text: '',
        isLong: true,
        okLabel: 'Save',
        save
      },
      trans
    );
    await vi.waitFor(() => expect(document.activeElement).toBe(field()));
    field().value = 'long\nthoughts';
    enter({ ctrlKey: true });
    await vi.waitFor(() =>
      expect(
        document.querySelector('.jp-Dialog [role=alert]')?.textContent
      ).toBe('Bad Gateway')
    );
    expect(field().value).toBe('long\nthoughts');
    enter({ ctrlKey: true });
    await asked;
    expect(save.mock.calls).toEqual([['long\nthoughts'], ['long\nthoughts']]);
  });

  it('asks for what was typed elsewhere only where that cannot be saved', async () => {
    const save = vi
      .fn<(text: string) => Promise<void>>()
      .mockResolvedValueOnce()
      .mockRejectedValueOnce(new Error('Bad Gateway'))
      .mockResolvedValueOnce();
    const question = {
      title: 'Name',
      label: 'Name',
      text: 'second',
      isTyped: true,
      isLong: true,
      okLabel: 'Save',
      save
    };
    await askText(question, trans);
    expect(dialog()).toBeNull();
    const asked = askText(question, trans);
    await vi.waitFor(() => expect(document.activeElement).toBe(field()));
    expect(field().value).toBe('second');
    enter({ ctrlKey: true });
    await asked;
    expect(save.mock.calls).toEqual([['second'], ['second'], ['second']]);
  });
});
