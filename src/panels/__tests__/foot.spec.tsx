import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { expect, it } from 'vitest';

import { FakeServer, FakeStream, settle } from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { ViewFoot, ViewOverlay } from '../view/foot';

it('says why the picture is not the one that was asked for', async () => {
  const client = new FakeServer();
  const service = new TdbgService({ client, stream: new FakeStream() });
  const model = await service.figure('a', 'histogram', {});
  await model.run.refresh();
  const foot = new ViewFoot({
    model,
    service,
    trans: nullTranslator.load('tdbg_lab')
  });
  await act(async () => {
    Widget.attach(foot, document.body);
    model.isActive = true;
    await settle(50);
  });
  const meta = { tdbg: { caption: 'All of it.' } };
  await act(async () => {
    client.figures[0].resolve({
      figure: { data: [], layout: { meta } },
      version: 1,
      pending: null,
      ms: 1
    });
    await settle(50);
  });
  expect(foot.node.textContent).toContain('All of it.');
  expect(foot.node.querySelector('[role="alert"]')).toBeNull();
  await act(async () => {
    model.choose({ scale: 'log' });
    await settle(300);
    client.figures[1].reject(new Error('There is no scale like that.'));
    await settle(50);
  });
  const alert = foot.node.querySelector('[role="alert"]');
  expect(alert?.textContent).toBe('There is no scale like that.');
  expect(foot.node.textContent).not.toContain('All of it.');
  // Of a run that is gone that is all there is to say, and not once for each picture.
  await act(async () => model.run.setMissing());
  expect(foot.node.textContent).toContain('This run was deleted');
  expect(foot.node.textContent).not.toContain('There is no scale like that.');
  expect(foot.node.querySelector('[role="alert"]')).toBeNull();
  foot.dispose();
  model.dispose();
  service.dispose();
});

it('says that the folder of a run that is not found may not be there now', async () => {
  const client = new FakeServer();
  const service = new TdbgService({ client, stream: new FakeStream() });
  const model = await service.figure('a', 'histogram', {});
  const overlay = new ViewOverlay({
    model,
    service,
    trans: nullTranslator.load('tdbg_lab')
  });
  await act(async () => {
    Widget.attach(overlay, document.body);
    model.run.setMissing();
    await settle();
  });
  expect(overlay.node.textContent).toContain('choose another run');
  await act(async () => service.runs.setAll([], { unread: ['mounted'] }));
  expect(overlay.node.textContent).toContain(
    'cannot read this folder of runs now: mounted'
  );
  await act(async () => overlay.dispose());
  model.dispose();
  service.dispose();
});
