import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterAll, describe, expect, it, vi } from 'vitest';

import { FakeServer, FakeStream, summary } from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { Dashboard } from '../dashboard';
import { DashboardToolbar } from '../dashboard/toolbar';
import { PanelRegistry } from '../registry';

it('says over the pictures that their run was deleted', async () => {
  const client = new FakeServer();
  const service = new TdbgService({ client, stream: new FakeStream() });
  const run = service.open('a');
  run.setSummary(summary({ status: 'running' }));
  const bar = new DashboardToolbar({
    run,
    service,
    commands: new CommandRegistry(),
    trans: nullTranslator.load('tdbg_lab'),
    onAdd: () => undefined
  });
  await act(async () => Widget.attach(bar, document.body));
  expect(bar.node.textContent).toContain('live');
  expect(bar.node.textContent).toContain('Stop…');
  await act(async () => run.setMissing());
  expect(bar.node.textContent).toContain('This run was deleted');
  expect(bar.node.textContent).not.toContain('live');
  expect(bar.node.textContent).not.toContain('Stop…');
  bar.dispose();
  service.dispose();
});

describe('Dashboard', () => {
  const service = new TdbgService({
    client: new FakeServer(),
    stream: new FakeStream()
  });
  const tiles: Widget[] = [];
  const create = (
    of = service,
    waitFor: (view: string) => Promise<void> = () => Promise.resolve()
  ): Dashboard =>
    new Dashboard({
      id: 'd',
      run: of.open('a'),
      service: of,
      commands: new CommandRegistry(),
      trans: nullTranslator.load('tdbg_lab'),
      panels: new PanelRegistry({
        createView: async (_, view) => {
          await waitFor(view);
          const tile = new Widget();
          tiles.push(tile);
          return tile;
        }
      })
    });
  afterAll(() => service.dispose());

  it('tells when it is closed: what keeps track of it could not open it again', () => {
    const dashboard = create();
    const onDisposed = vi.fn();
    dashboard.disposed.connect(onDisposed);
    dashboard.dispose();
    expect(onDisposed).toHaveBeenCalledOnce();
  });

  it('is one landmark: what it holds is called the same in every panel', () => {
    const dashboard = create();
    expect(dashboard.node.getAttribute('role')).toBe('region');
    expect(dashboard.content.node.hasAttribute('role')).toBe(false);
    expect(dashboard.content.node.hasAttribute('aria-label')).toBe(false);
    dashboard.dispose();
  });

  it('says that pictures are on their way, also while the server is not reached', async () => {
    vi.useFakeTimers();
    const client = new FakeServer();
    client.failure = new ServerConnection.ResponseError(
      new Response(null, { status: 502 })
    );
    const slow = new TdbgService({ client, stream: new FakeStream() });
    const dashboard = create(slow);
    const filled = dashboard.fill(null);
    const waits = (): boolean =>
      dashboard.content.node.querySelector('[role=status]') !== null;
    await vi.advanceTimersByTimeAsync(2000);
    expect(waits()).toBe(true);
    client.failure = null;
    await vi.advanceTimersByTimeAsync(5000);
    await filled;
    expect(waits()).toBe(false);
    expect([...dashboard.content.widgets()].length).toBeGreaterThan(1);
    dashboard.dispose();
    slow.dispose();
    vi.useRealTimers();
  });

  it('takes its pictures along when it is closed', async () => {
    const dashboard = create();
    await dashboard.fill(null);
    expect(tiles.length).toBeGreaterThan(1);
    dashboard.dispose();
    expect(tiles.every(tile => tile.isDisposed)).toBe(true);
  });

  it('leaves nothing behind when it is closed while it is laid out again', async () => {
    tiles.length = 0;
    let finish = (): void => undefined;
    const slow = new Promise<void>(resolve => (finish = resolve));
    const dashboard = create(service, view =>
      view === 'slow' ? slow : Promise.resolve()
    );
    const filled = dashboard.fill({
      main: {
        type: 'tab-area',
        currentIndex: 0,
        tiles: ['quick', 'slow'].map(view => ({ view, params: {} }))
      }
    });
    await vi.waitFor(() => expect(tiles).toHaveLength(1));
    dashboard.dispose();
    expect(tiles[0].isDisposed).toBe(true);
    finish();
    await filled;
    // Nor is it laid out anew.
    expect(tiles).toHaveLength(2);
    expect(tiles[1].isDisposed).toBe(true);
  });

  it('leaves nothing behind of an arrangement that cannot be read', async () => {
    tiles.length = 0;
    vi.spyOn(console, 'error').mockImplementationOnce(() => undefined);
    const dashboard = create();
    await dashboard.fill({
      main: {
        type: 'split-area',
        orientation: 'vertical',
        children: [
          {
            type: 'tab-area',
            currentIndex: 0,
            tiles: [{ view: 'scalars', params: {} }]
          }
        ]
      }
    });
    expect(tiles[0].isDisposed).toBe(true);
    const shown = [...dashboard.content.widgets()];
    expect(shown).toEqual(tiles.slice(1));
    expect(shown.length).toBeGreaterThan(1);
    dashboard.dispose();
  });
});
