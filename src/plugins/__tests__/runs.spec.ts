import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  FakeServer,
  FakeStream,
  settle,
  summary
} from '../../api/__tests__/fake';
import { CommandIDs } from '../../commands';
import { TdbgService } from '../../model/service';
import plugin from '../runs';

const dialog = (): HTMLElement | null => document.querySelector('.jp-Dialog');

/** Wait for a dialog; answers what it says. */
async function said(): Promise<string> {
  await vi.waitFor(() => expect(dialog()?.textContent).toBeTruthy());
  return dialog()!.textContent ?? '';
}

/** Answer the dialog by its last button, having typed `text` if it asks for one. */
function answer(text?: string): void {
  if (text !== undefined) {
    dialog()!.querySelector('input')!.value = text;
  }
  [...dialog()!.querySelectorAll<HTMLElement>('button')].pop()!.click();
}

describe('commands about several runs', () => {
  let client: FakeServer;
  let service: TdbgService;
  let commands: CommandRegistry;
  let below: string | undefined;

  beforeEach(async () => {
    // JupyterLab draws the parts of a dialog whenever it likes to.
    vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', false);
    client = new FakeServer();
    client.list = [
      summary({ id: 'a', name: 'first', tags: ['slow', 'digits'] }),
      summary({ id: 'b', name: 'second', tags: ['digits', 'wide'] }),
      summary({ id: 'c', name: 'third', status: 'running' })
    ];
    service = new TdbgService({ client, stream: new FakeStream() });
    await service.refresh();
    await settle();
    commands = new CommandRegistry();
    const app = {
      commands,
      contextMenuHitTest: () => ({ dataset: { tdbgRun: below } })
    };
    void plugin.activate(
      app as unknown as JupyterFrontEnd,
      service,
      null,
      null
    );
  });
  afterEach(() => {
    dialog()?.remove();
    service.dispose();
    Notification.dismiss();
    vi.unstubAllGlobals();
    vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  });

  it('mean in the menu of a chosen run all that are chosen, else that run', () => {
    service.chosen.addAll();
    below = 'b';
    const label = (id: string): string => commands.label(id, { context: true });
    expect(label(CommandIDs.deleteRun)).toBe('Delete 2 Runs…'); // one is live
    expect(label(CommandIDs.editTags)).toBe('Edit Tags of 3 Runs…');
    expect(label(CommandIDs.stopRun)).toBe('Stop Training…');
    expect(label(CommandIDs.editNote)).toBe('Edit Note…');
    service.chosen.clear();
    service.chosen.toggle('a', null);
    service.chosen.toggle('c', null);
    expect(label(CommandIDs.deleteRun)).toBe('Delete Run…');
    service.chosen.clear();
    expect(label(CommandIDs.deleteRun)).toBe('Delete Run…');
  });

  it('delete those that have ended, and say which', async () => {
    const remove = vi.spyOn(client, 'remove');
    const done = commands.execute(CommandIDs.deleteRun, {
      runs: ['a', 'b', 'c', 'gone']
    });
    const text = await said();
    expect(text).toContain('Delete 2 runs?');
    expect(text).toContain('first, second: their directories');
    expect(text).toContain('1 that is live stays.');
    answer();
    await done;
    expect(remove.mock.calls).toEqual([['a'], ['b']]);
    expect(service.runs.all.map(({ id }) => id)).toEqual(['c']);
  });

  it('go on where one cannot be deleted, and tell why', async () => {
    vi.spyOn(client, 'remove').mockRejectedValueOnce(new Error('Read-only'));
    const done = commands.execute(CommandIDs.deleteRun, { runs: ['a', 'b'] });
    await said();
    answer();
    await done;
    expect(service.runs.all.map(({ id }) => id)).toEqual(['c', 'a']);
    const [{ message }] = Notification.manager.notifications;
    expect(message).toBe('1 run could not be deleted: Read-only');
  });

  it('delete nothing that is live', async () => {
    client.list = client.list.map(run => ({ ...run, status: 'running' }));
    await service.refresh();
    await settle();
    await commands.execute(CommandIDs.deleteRun, { runs: ['a', 'b'] });
    expect(dialog()).toBeNull();
    const [{ message }] = Notification.manager.notifications;
    expect(message).toBe('All 2 runs are live: stop them first.');
  });

  it('change the tags that all of them have, and no others', async () => {
    const done = commands.execute(CommandIDs.editTags, { runs: ['a', 'b'] });
    await said();
    await vi.waitFor(() =>
      expect(dialog()!.querySelector('input')?.value).toBe('digits')
    );
    answer('sweep, best');
    await done;
    const tags = (id: string): unknown => service.runs.get(id)?.tags;
    expect(tags('a')).toEqual(['slow', 'sweep', 'best']);
    expect(tags('b')).toEqual(['wide', 'sweep', 'best']);
  });

  it.each([
    ['the only one', ['c'], 'Stop third?'],
    ['two', ['b', 'c'], 'Stop 2 trainings?']
  ])('stop those that are live: %s', async (_, live, title) => {
    const stop = vi.spyOn(client, 'stop');
    client.list = client.list.map(run =>
      live.includes(run.id) ? { ...run, status: 'running' } : run
    );
    await service.refresh();
    await settle();
    const done = commands.execute(CommandIDs.stopRun, {
      runs: ['a', 'b', 'c']
    });
    expect(await said()).toContain(title);
    answer('enough');
    await done;
    expect(stop.mock.calls).toEqual(live.map(id => [id, 'enough']));
  });
});
