import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { FakeServer, FakeStream } from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { RulesModel } from '../rules/model';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('asks again for titles and texts of rules until the server tells them, and no longer', async () => {
  const client = new FakeServer();
  client.catalogue = [
    {
      name: 'nan',
      title: 'Not finite',
      explanation: '',
      group: '',
      thresholds: []
    }
  ];
  const service = new TdbgService({ client, stream: new FakeStream() });
  client.failure = new Error('Not now');
  const model = new RulesModel({ run: service.open('a'), service });
  const onChange = vi.fn();
  model.changed.connect(onChange);
  await vi.advanceTimersByTimeAsync(5000);
  expect(model.title('nan')).toBe('Nan');
  client.failure = null;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(model.title('nan')).toBe('Not finite');
  expect(onChange).toHaveBeenCalledOnce();
  const times = client.asked.length;
  await vi.advanceTimersByTimeAsync(120_000);
  expect(client.asked.length).toBe(times);
  model.dispose();
  service.dispose();
});
