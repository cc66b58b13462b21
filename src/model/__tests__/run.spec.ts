import { ServerConnection } from '@jupyterlab/services';
import { expect, it, vi } from 'vitest';

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

it('is read again by itself where the server was not reached', async () => {
  vi.useFakeTimers();
  const client = new FakeServer();
  client.failure = new ServerConnection.ResponseError(
    new Response(null, { status: 502 })
  );
  const run = new RunModel({ id: 'a', client });
  run.retain();
  await vi.advanceTimersByTimeAsync(100);
  expect([run.state, run.error]).toEqual([
    'error',
    'The server does not answer.'
  ]);
  client.failure = null;
  await vi.advanceTimersByTimeAsync(5000);
  expect([run.state, run.error]).toEqual(['ready', '']);
  run.dispose();
  vi.useRealTimers();
});

it('is at the step where the run goes on from a checkpoint at once, and not because of old news', async () => {
  const client = new FakeServer();
  const at = (last_step: number, last_write_ns: number) =>
    summary({ status: 'running', last_step, last_write_ns });
  client.list = [at(99, 1e18)];
  client.stepList = [0, 50, 99];
  const run = new RunModel({ id: 'a', client });
  run.retain();
  await settle();
  expect(run.cursor.step).toBe(99);
  run.setSummary(at(98, 1e18 - 1e9));
  expect(run.cursor.step).toBe(99);
  run.setSummary(at(60, 1e18 + 1e9));
  expect(run.cursor.step).toBe(60);
  run.dispose();
});
