import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import type { AccordionPanel } from '@lumino/widgets';
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
  afterEach(() => {
    sidebar.dispose();
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
