import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import {
  FakeServer,
  FakeStream,
  settle,
  summary
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { RunsBody } from '../runs/body';

describe('RunsBody', () => {
  let client: FakeServer;
  let service: TdbgService;
  let body: RunsBody;
  const show = async (): Promise<void> => {
    body = new RunsBody({
      service,
      commands: new CommandRegistry(),
      trans: nullTranslator.load('tdbg_lab')
    });
    await act(async () => {
      Widget.attach(body, document.body);
      await service.refresh();
      await settle();
    });
  };

  beforeEach(() => {
    client = new FakeServer();
    service = new TdbgService({ client, stream: new FakeStream() });
  });
  afterEach(async () => {
    await act(async () => body.dispose());
    service.dispose();
  });

  it('has no control within the row of a run, which is one itself', async () => {
    client.list = [summary()];
    await show();
    const rows = [...body.node.querySelectorAll('[role="option"]')];
    expect(rows.map(row => row.querySelectorAll('button').length)).toEqual([0]);
  });

  it.each([true, false])(
    'says that runs may be missing where the server does not look at all folders: %s',
    async isTruncated => {
      client.isTruncated = isTruncated;
      await show();
      expect(body.node.textContent?.includes('TdbgApp.run_roots')).toBe(
        isTruncated
      );
    }
  );

  it('names a folder of runs that the server cannot read', async () => {
    const note = (): string =>
      body.node.querySelector('.jp-TdbgRuns-note')?.textContent ?? '';
    await show();
    expect(note()).toBe('');
    await act(async () => service.runs.setAll([], { unread: ['mounted'] }));
    expect(note()).toContain('TdbgApp.run_roots cannot be read now: mounted.');
  });
});
