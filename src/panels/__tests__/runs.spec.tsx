import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { expect, it } from 'vitest';

import {
  FakeServer,
  FakeStream,
  settle,
  summary
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { RunsBody } from '../runs/body';

it('has no control within the row of a run, which is one itself', async () => {
  const client = new FakeServer();
  client.list = [summary()];
  const service = new TdbgService({ client, stream: new FakeStream() });
  const body = new RunsBody({
    service,
    commands: new CommandRegistry(),
    trans: nullTranslator.load('tdbg_lab')
  });
  await act(async () => {
    Widget.attach(body, document.body);
    await service.refresh();
    await settle();
  });
  const rows = [...body.node.querySelectorAll('[role="option"]')];
  expect(rows.map(row => row.querySelectorAll('button').length)).toEqual([0]);
  await act(async () => body.dispose());
  service.dispose();
});

it.each([true, false])(
  'says that runs may be missing where the server does not look at all folders: %s',
  async isTruncated => {
    const client = new FakeServer();
    client.isTruncated = isTruncated;
    const service = new TdbgService({ client, stream: new FakeStream() });
    const body = new RunsBody({
      service,
      commands: new CommandRegistry(),
      trans: nullTranslator.load('tdbg_lab')
    });
    await act(async () => {
      Widget.attach(body, document.body);
      await service.refresh();
      await settle();
    });
    expect(body.node.textContent?.includes('TdbgApp.run_roots')).toBe(
      isTruncated
    );
    await act(async () => body.dispose());
    service.dispose();
  }
);

it('names a folder of runs that the server cannot read', async () => {
  const client = new FakeServer();
  const service = new TdbgService({ client, stream: new FakeStream() });
  const body = new RunsBody({
    service,
    commands: new CommandRegistry(),
    trans: nullTranslator.load('tdbg_lab')
  });
  const note = (): string =>
    body.node.querySelector('.jp-TdbgRuns-note')?.textContent ?? '';
  await act(async () => {
    Widget.attach(body, document.body);
    await service.refresh();
    await settle();
  });
  expect(note()).toBe('');
  await act(async () => service.runs.setAll([], { unread: ['mounted'] }));
  expect(note()).toContain('TdbgApp.run_roots cannot be read now: mounted.');
  await act(async () => body.dispose());
  service.dispose();
});
