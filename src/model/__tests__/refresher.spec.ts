import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Refresher } from '../refresher';

describe('Refresher', () => {
  let asked = 0;
  let answer: Array<(error?: Error) => void> = [];
  let refresher: Refresher;
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  beforeEach(() => {
    vi.useFakeTimers();
    asked = 0;
    answer = [];
    refresher = new Refresher(() => {
      asked += 1;
      return new Promise((resolve, reject) => {
        answer.push(error => (error ? reject(error) : resolve()));
      });
    }, 100);
  });
  afterEach(() => {
    refresher.dispose();
    vi.useRealTimers();
  });

  it('asks once for news that come together', async () => {
    const all = [refresher.invoke(), refresher.invoke(), refresher.invoke()];
    await pass(200);
    answer[0]();
    await Promise.all(all);
    await pass(500);
    expect(asked).toBe(1);
  });

  it('asks again after news that came while it was asking', async () => {
    const first = refresher.invoke();
    await pass(100);
    void refresher.invoke();
    void refresher.invoke();
    await pass(500);
    expect(asked).toBe(1);
    answer[0]();
    await pass(100);
    expect(asked).toBe(2);
    answer[1]();
    await first;
    await pass(500);
    expect(asked).toBe(2);
  });

  it('asks again after a failure', async () => {
    const failed = refresher.invoke().catch((error: Error) => error.message);
    await pass(100);
    answer[0](new Error('offline'));
    expect(await failed).toBe('offline');
    void refresher.invoke();
    await pass(100);
    expect(asked).toBe(2);
  });
});
