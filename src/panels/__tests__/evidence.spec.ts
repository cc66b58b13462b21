import { expect, it } from 'vitest';
import { Widget } from '@lumino/widgets';

import {
  FakeServer,
  FakeStream,
  finding,
  settle
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { PanelRegistry } from '../registry';
import { EvidencePanel } from '../rules/evidence';
import { RulesModel } from '../rules/model';

it('takes no room where there is no picture', async () => {
  const client = new FakeServer();
  const service = new TdbgService({ client, stream: new FakeStream() });
  const run = service.open('a');
  const model = new RulesModel({ run, service });
  const evidence = new EvidencePanel({
    model,
    panels: new PanelRegistry({ createView: async () => new Widget() })
  });
  expect(evidence.isHidden).toBe(true);
  client.ruleList = {
    ...client.ruleList,
    findings: [finding({ view: { name: 'histogram', params: {} } })]
  };
  await run.refresh();
  await settle();
  expect(evidence.isHidden).toBe(false);
  expect(evidence.widgets.length).toBe(1);
  client.ruleList = { ...client.ruleList, findings: [finding()] };
  await run.refresh();
  expect(evidence.isHidden).toBe(true);
  evidence.dispose();
  model.dispose();
  service.dispose();
});
