import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import type { IStateDB } from '@jupyterlab/statedb';
import { CommandRegistry } from '@lumino/commands';
import type { JSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { expect, it, vi } from 'vitest';

import { FakeServer, FakeStream, summary } from '../../api/__tests__/fake';
import { CommandIDs } from '../../commands';
import { TdbgService } from '../../model/service';
import type { Dashboard } from '../../panels/dashboard';
import { PanelRegistry } from '../../panels/registry';
import plugin from '../dashboard';

it('keeps its pictures over a reload, and begins with those that suit when it is opened anew', async () => {
  const client = new FakeServer();
  client.list = [summary({ id: 'a' })];
  const service = new TdbgService({ client, stream: new FakeStream() });
  const state = new Map<string, JSONObject>();
  let shown: Dashboard | undefined;
  const app = {
    commands: new CommandRegistry(),
    shell: { add: (dashboard: Dashboard) => (shown = dashboard) }
  };
  void plugin.activate(
    app as unknown as JupyterFrontEnd,
    service,
    new PanelRegistry({ createView: async () => new Widget() }),
    null,
    null,
    null,
    {
      fetch: async (key: string) => state.get(key),
      save: async (key: string, value: JSONObject) => state.set(key, value)
    } as unknown as IStateDB,
    {} as ILabShell
  );
  /** Open it; how its two pictures stand. */
  const open = async (width: number, restoring: boolean): Promise<string> => {
    vi.stubGlobal('innerWidth', width + 320);
    await app.commands.execute(CommandIDs.openDashboard, {
      run: 'a',
      restoring
    });
    await vi.waitFor(() =>
      expect([...shown!.content.widgets()].length).toBe(2)
    );
    const { main } = shown!.content.saveLayout();
    shown!.dispose();
    return main?.type === 'split-area' ? main.orientation : '';
  };
  expect(await open(1200, false)).toBe('horizontal');
  expect(await open(400, true)).toBe('horizontal');
  expect(await open(400, false)).toBe('vertical');
  vi.unstubAllGlobals();
  service.dispose();
});
