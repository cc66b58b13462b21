import { describe, expect, it } from 'vitest';

import { FakeServer, settle, summary } from '../../api/__tests__/fake';
import type { IProfileRequest } from '../../api/wire';
import { ProfilingModel } from '../profiling';
import { RunModel } from '../run';

function make(...states: Array<Partial<IProfileRequest>>): {
  client: FakeServer;
  model: ProfilingModel;
} {
  const client = new FakeServer();
  client.profileStates = states;
  return { client, model: new ProfilingModel({ client, run: 'a', pollMs: 5 }) };
}

async function end(model: ProfilingModel): Promise<void> {
  for (let i = 0; i < 400 && model.isBusy; i++) {
    await settle(5);
  }
}

describe('ProfilingModel', () => {
  it('tells each state until the profile is ready, and then asks no more', async () => {
    const { client, model } = make(
      { state: 'requested' },
      { state: 'recording' },
      { state: 'saving', answer: 'profiled operators of step 3' },
      { state: 'ready', answer: 'profiled operators of step 3' }
    );
    const seen: string[] = [];
    model.changed.connect(() => seen.push(model.state));
    await model.start(5);
    expect(client.asked[0]).toBe('profile 5');
    await model.start(5);
    await end(model);
    expect(seen).toEqual(['requested', 'recording', 'saving', 'ready']);
    expect(model.message).toBe('profiled operators of step 3');
    expect(client.asked.filter(one => one.startsWith('profile '))).toHaveLength(
      1
    );
    const asked = client.asked.length;
    await settle(30);
    expect(client.asked.length).toBe(asked);
    model.dispose();
  });

  it('tells why there is none, and can be asked again', async () => {
    const { client, model } = make({ state: 'ready' });
    client.failure = new Error('The run is finished: nothing to profile.');
    await model.start(5);
    expect(model.state).toBe('failed');
    expect(model.message).toContain('nothing to profile');
    client.failure = null;
    await model.start(5);
    await end(model);
    expect(model.state).toBe('ready');
    model.dispose();
  });

  it('gives up some looks after the training has ended', async () => {
    const { model } = make({ state: 'recording' });
    await model.start(5);
    model.end();
    await end(model);
    expect(model.state).toBe('failed');
    expect(model.message).toBe('');
    model.dispose();
  });

  it('belongs to a run, which tells it when training ends', async () => {
    const client = new FakeServer();
    client.profileStates = [{ state: 'refused', answer: 'training ended' }];
    const run = new RunModel({ id: 'a', client });
    run.setSummary(summary({ status: 'running' }));
    await run.profiling.start(3);
    run.setSummary(summary({ status: 'finished' }));
    expect(run.profiling.isBusy || run.profiling.state === 'refused').toBe(
      true
    );
    run.dispose();
    expect(run.profiling.isDisposed).toBe(true);
  });
});
