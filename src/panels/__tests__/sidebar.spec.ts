import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { MessageLoop } from '@lumino/messaging';
import type { AccordionPanel } from '@lumino/widgets';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';

import { FakeServer, FakeStream } from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { TdbgSidebar } from '../sidebar';

describe('TdbgSidebar', () => {
  const service = new TdbgService({
    client: new FakeServer(),
    stream: new FakeStream()
  });
  let sidebar: TdbgSidebar;
  const open = (height: number): AccordionPanel => {
    vi.stubGlobal('innerHeight', height);
    sidebar = new TdbgSidebar({
      service,
      commands: new CommandRegistry(),
      trans: nullTranslator.load('tdbg_lab')
    });
    return sidebar.content as AccordionPanel;
  };
  afterEach(async () => {
    await act(async () => sidebar.dispose());
    vi.unstubAllGlobals();
  });
  afterAll(() => service.dispose());

  it.each([
    [700, ['Runs', 'Current run', 'Layers']],
    [1000, ['Runs', 'Current run', 'Layers', 'Machine']]
  ])('begins in a window of %i px with room for the runs', (height, shown) => {
    const { widgets } = open(height);
    expect(
      widgets
        .filter(({ isHidden }) => !isHidden)
        .map(({ title }) => title.label)
    ).toEqual(shown);
  });

  it('gives a section height that was folded when the page was loaded', () => {
    const content = open(1000);
    content.collapse(0);
    content.setRelativeSizes([0, 0.5, 0.5, 0]); // as the layout remembers it
    content.expand(0);
    expect(content.relativeSizes()[0]).toBeGreaterThan(0.2);
  });

  it('takes the focus when it is called up, but not from a name that is being edited', async () => {
    open(1000);
    await act(async () => Widget.attach(sidebar, document.body));
    const name = document.createElement('input');
    sidebar.node.append(name);
    name.focus();
    MessageLoop.sendMessage(sidebar, Widget.Msg.ActivateRequest);
    expect(document.activeElement).toBe(name);
    name.remove();
    MessageLoop.sendMessage(sidebar, Widget.Msg.ActivateRequest);
    expect(document.activeElement?.getAttribute('aria-label')).toBe(
      'Filter runs'
    );
  });

  it('lays the sections out again when its header takes more room', () => {
    let resized = (): void => undefined;
    vi.stubGlobal(
      'ResizeObserver',
      class {
        constructor(callback: () => void) {
          resized = callback;
        }
        observe = (): void => undefined;
        disconnect = (): void => undefined;
      }
    );
    const update = vi.spyOn(open(1000), 'update');
    resized();
    expect(update).toHaveBeenCalledOnce();
  });
});
