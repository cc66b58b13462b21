import { expect, it } from 'vitest';

import { FakeServer, settle, summary } from '../../api/__tests__/fake';
import { RunModel } from '../run';

it('has no step where the run made none, whatever was recorded before its first', async () => {
  const client = new FakeServer();
  client.list = [summary({ last_step: -1 })];
  client.stepList = [0];
  const run = new RunModel({ id: 'a', client });
  run.retain();
  await settle();
  expect(run.state).toBe('ready');
  expect(run.cursor.step).toBe(-1);
  run.dispose();
});
