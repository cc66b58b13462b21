import { describe, expect, it } from 'vitest';

import { FakeServer, finding, settle } from '../../api/__tests__/fake';
import type { IRecheck } from '../../api/wire';
import { RecheckModel } from '../recheck';
import { asked, end } from './asked';

const answer = (over: Partial<IRecheck> = {}): IRecheck =>
  asked({ message: 'Checked to step 50', ...over });

const DONE = answer({
  state: 'done',
  progress: 1,
  result: {
    state: {
      rule: 'dead_relu',
      status: 'issue_found',
      reason: '',
      step_checked: 99,
      findings: 1,
      cost_ms: 1,
      parameters: {}
    },
    findings: [finding()],
    found: 1
  }
});

function make(...rechecks: IRecheck[]): {
  client: FakeServer;
  model: RecheckModel;
} {
  const client = new FakeServer();
  client.rechecks = rechecks;
  return { client, model: new RecheckModel({ client, run: 'a', pollMs: 5 }) };
}

describe('RecheckModel', () => {
  it('asks until it is done, and then no more', async () => {
    const { client, model } = make(answer(), answer({ progress: 0.7 }), DONE);
    const seen: number[] = [];
    model.changed.connect(() => seen.push(model.progress));
    await model.start('dead_relu', { threshold_layer: '30' });
    expect(model.isBusy).toBe(true);
    await end(model);
    expect(model.state).toBe('done');
    expect(model.result?.found).toBe(1);
    expect(seen).toEqual([0, 0.5, 0.7, 1]);
    expect(client.asked[0]).toBe('recheck dead_relu {"threshold_layer":"30"}');
    const asked = client.asked.length;
    await settle(30);
    expect(client.asked.length).toBe(asked);
    model.dispose();
  });

  it('tells what does not fit', async () => {
    const { client, model } = make(answer());
    client.failure = new Error('threshold_layer is -1; expected more.');
    await model.start('dead_relu', { threshold_layer: '-1' });
    expect(model.state).toBe('failed');
    expect(model.message).toContain('expected more');
  });

  it('is cancelled by the user, and when it is thrown away', async () => {
    const { client, model } = make(answer());
    await model.start('dead_relu', {});
    await model.cancel();
    expect(model.state).toBe('cancelled');
    expect(client.asked).toContain('cancel j');
    await model.start('dead_relu', {});
    model.dispose();
    model.dispose();
    await settle();
    expect(client.asked.filter(what => what === 'cancel j')).toHaveLength(2);
  });
});
