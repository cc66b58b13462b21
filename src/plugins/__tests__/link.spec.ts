import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import { Router } from '@jupyterlab/application';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { expect, it, vi } from 'vitest';

import { CommandIDs } from '../../commands';
import plugin from '../link';
import type { ITdbgService } from '../../tokens';

const describedBy = { args: { type: 'object', properties: {} } };

it('is followed once, and the page not loaded again, also where the address asks for a reset', async () => {
  const commands = new CommandRegistry();
  const router = new Router({ base: '/', commands });
  const opened: unknown[] = [];
  commands.addCommand(CommandIDs.openView, {
    describedBy,
    execute: args => {
      opened.push(args);
    }
  });
  // What JupyterLab does; a second time it loads the page again.
  const reset = vi.fn(async () => {
    const { path, search } = router.current;
    await Promise.resolve();
    router.navigate(path + (search ?? '').replace('reset&', ''));
  });
  commands.addCommand('reset', { describedBy, execute: reset });
  router.register({ command: 'reset', pattern: /[?&]reset/, rank: 20 });
  void plugin.activate(
    {
      commands,
      restored: Promise.resolve()
    } as unknown as JupyterFrontEnd,
    { isGone: async () => false } as unknown as ITdbgService,
    nullTranslator,
    {} as ILabShell,
    router
  );
  window.history.pushState({}, '', '/lab?reset&tdbg-run=1&tdbg-open=overview');
  await router.route();
  await new Promise(resolve => requestAnimationFrame(resolve));
  await new Promise(resolve => setTimeout(resolve, 20));
  expect(opened).toEqual([{ run: '1', view: 'overview', params: {} }]);
  expect(window.location.href).toMatch(/\/lab$/);
  expect(reset).toHaveBeenCalledOnce();
});
