import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import {
  FakeServer,
  FakeStream,
  settle,
  tensor
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { LayersBody } from '../layers/body';

describe('LayersBody', () => {
  let service: TdbgService;
  let body: LayersBody;
  const tree = (): HTMLElement =>
    body.node.querySelector<HTMLElement>('[role="tree"]')!;
  const press = (...keys: ReadonlyArray<string>): void =>
    keys.forEach(key =>
      act(() => {
        tree().dispatchEvent(
          new KeyboardEvent('keydown', { key, bubbles: true })
        );
      })
    );
  const focused = (): string | undefined =>
    document.getElementById(tree().getAttribute('aria-activedescendant') ?? '')
      ?.title;

  beforeEach(async () => {
    const client = new FakeServer();
    client.tensorList = ['stem', 'body.conv', 'body.norm'].map(module =>
      tensor({ name: `activation/${module}`, module })
    );
    service = new TdbgService({ client, stream: new FakeStream() });
    service.setCurrent('a');
    body = new LayersBody({
      service,
      commands: new CommandRegistry(),
      trans: nullTranslator.load('tdbg_lab')
    });
    await act(async () => {
      Widget.attach(body, document.body);
      await settle();
    });
    // In a page without a layout no row is in sight.
    Object.defineProperty(tree(), 'clientHeight', { value: 400 });
    press('Home');
  });
  afterEach(async () => {
    await act(async () => body.dispose());
    service.dispose();
  });

  it('goes into an open group by Right, and out to it by Left', () => {
    expect(focused()).toBe('stem');
    press('ArrowRight');
    expect(focused()).toBe('activation/stem');
    press('ArrowRight');
    expect(focused()).toBe('activation/stem');
    press('ArrowLeft');
    expect(focused()).toBe('stem');
    press('ArrowLeft', 'ArrowDown');
    expect(focused()).toBe('body');
    press('ArrowLeft', 'ArrowLeft');
    expect(focused()).toBe('body');
    press('ArrowRight', 'ArrowRight');
    expect(focused()).toBe('body.conv');
    press('ArrowLeft');
    expect(focused()).toBe('body');
  });

  it('goes to the next row that begins with a letter, and round', () => {
    press('b');
    expect(focused()).toBe('body');
    press('n');
    expect(focused()).toBe('body.norm');
    press('S');
    expect(focused()).toBe('stem');
    press('x');
    expect(focused()).toBe('stem');
  });
});
