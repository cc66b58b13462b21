import { nullTranslator } from '@jupyterlab/translation';
import { MessageLoop } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { FakeServer, FakeStream, param, view } from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { ViewToolbar } from '../view/toolbar';

describe('ViewToolbar', () => {
  const client = new FakeServer();
  client.viewList = [
    view({
      params: [
        param(),
        param({ name: 'scale', label: 'Scale', kind: 'choice', choices: ['a'] })
      ]
    })
  ];
  const service = new TdbgService({ client, stream: new FakeStream() });
  let bar: ViewToolbar;
  const resize = (width: number): Promise<void> =>
    act(async () => {
      MessageLoop.sendMessage(bar, new Widget.ResizeMessage(width, 30));
    });
  const press = (button: Element | null): Promise<void> =>
    act(async () => {
      button?.dispatchEvent(new Event('pointerdown', { bubbles: true }));
      button?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    });
  const labels = (root: ParentNode): ReadonlyArray<string | null> =>
    [...root.querySelectorAll('[aria-label^="Tensor"], [aria-label="Scale"]')]
      .filter(node => node.closest('.jp-TdbgPicker') === null)
      .map(node => node.getAttribute('aria-label'));

  beforeEach(async () => {
    bar = new ViewToolbar({
      model: await service.figure('a', 'histogram', {}),
      runs: service.runs,
      trans: nullTranslator.load('tdbg_lab'),
      isTable: () => false,
      onTable: () => undefined,
      tableChanged: new Signal<unknown, void>({})
    });
    await act(async () => Widget.attach(bar, document.body));
  });
  afterEach(async () => {
    await act(async () => bar.dispose());
  });

  it('shows what matters most where there is room, and else among the options', async () => {
    const options = (): Element | null =>
      bar.node.querySelector('[aria-label="Options of this view"]');
    await resize(400);
    expect(labels(bar.node)).toEqual(['Tensor: Tensor: automatic', 'Scale']);
    expect(options()).toBeNull();
    await resize(220);
    expect(labels(bar.node)).toEqual(['Tensor: Tensor: automatic']);
    await resize(120);
    expect(labels(bar.node)).toEqual([]);
    await press(options());
    expect(labels(document)).toEqual(['Tensor: Tensor: automatic', 'Scale']);
  });

  it('keeps the options open while a tensor is chosen there', async () => {
    await resize(120);
    await press(bar.node.querySelector('[aria-haspopup="dialog"]'));
    await press(
      document.querySelector('.jp-TdbgOptions .jp-TdbgPicker-button')
    );
    await press(document.querySelector('.jp-TdbgPicker-search'));
    expect(document.querySelector('.jp-TdbgOptions')).not.toBeNull();
    expect(document.querySelector('.jp-TdbgPicker')).not.toBeNull();
  });
});
