import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { expect, it, vi } from 'vitest';

import {
  FakeServer,
  FakeStream,
  finding,
  settle
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { RuleDetail } from '../rules/detail';
import { RulesModel } from '../rules/model';

vi.hoisted(() => {
  // What JupyterLab wants to be there when it is imported.
  vi.stubGlobal('DragEvent', MouseEvent);
  vi.stubGlobal('matchMedia', () => ({ addListener: () => undefined }));
  vi.stubGlobal('requestIdleCallback', (call: () => void) => call());
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
});

it('lists the worst of hundreds of findings, those up to the chosen one, and all on request', async () => {
  const client = new FakeServer();
  const findings = Array.from({ length: 200 }, (_, i) =>
    finding({ id: `f${i}`, step_first: i })
  );
  client.ruleList = { states: [], findings, muted: [], fixes: {} };
  const service = new TdbgService({ client, stream: new FakeStream() });
  const run = service.open('a');
  const hold = run.retain();
  await settle();
  const model = new RulesModel({ run, service });
  const detail = new RuleDetail({
    model,
    commands: new CommandRegistry(),
    trans: nullTranslator.load('tdbg_lab')
  });
  await act(async () => Widget.attach(detail, document.body));
  const listed = (): number =>
    detail.node.querySelectorAll('.jp-TdbgFinding').length;
  expect(listed()).toBe(20);
  act(() => model.choose('dead_relu', 'f49'));
  expect(listed()).toBe(50);
  const more = [...detail.node.querySelectorAll('button')].pop();
  expect(more?.textContent).toBe('Show 150 more findings');
  act(() => more?.click());
  expect(listed()).toBe(200);
  await act(async () => detail.dispose());
  model.dispose();
  hold.dispose();
  service.dispose();
});
