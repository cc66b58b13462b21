import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';
import { expect, it } from 'vitest';

import { FakeServer, FakeStream } from '../../api/__tests__/fake';
import { CommandIDs } from '../../commands';
import { TdbgService } from '../../model/service';
import plugin from '../sidebar';

it.each([
  ['JupyterLab', {} as ILabShell],
  ['Jupyter Notebook, which has such an item of its own', null]
])('lists the command that shows the side bar once in %s', (_, labShell) => {
  const listed: string[] = [];
  const app = { commands: new CommandRegistry(), shell: { add: () => 0 } };
  void plugin.activate(
    app as unknown as JupyterFrontEnd,
    new TdbgService({ client: new FakeServer(), stream: new FakeStream() }),
    null,
    { addItem: ({ command }: { command: string }) => listed.push(command) },
    null,
    labShell
  );
  expect(listed.includes(CommandIDs.showSidebar)).toBe(labShell !== null);
  expect(listed).toContain(CommandIDs.refresh);
  expect(app.commands.hasCommand(CommandIDs.showSidebar)).toBe(true);
});
