import { describe, expect, it, vi } from 'vitest';

import { gpu, host } from '../../api/__tests__/fake';
import { KEPT_S, MachineModel, meters } from '../machine';

/** Epoch time in ns, `seconds` after some moment. */
const at = (seconds: number): number => (1e9 + seconds) * 1e9;

describe('MachineModel', () => {
  const create = () => {
    const stream = { watchHost: vi.fn() };
    return { stream, model: new MachineModel(stream) };
  };

  it('has the machine read while somebody retains it', () => {
    const { stream, model } = create();
    const last = () => stream.watchHost.mock.lastCall?.[0];
    const one = model.retain();
    const two = model.retain();
    expect(last()).toBe(true);
    one.dispose();
    one.dispose();
    expect(last()).toBe(true);
    two.dispose();
    expect(last()).toBe(false);
  });

  it('keeps the last two minutes of each meter', () => {
    const { model } = create();
    for (let second = 0; second <= 2 * KEPT_S; second++) {
      model.put(host({ time_ns: at(second), cpu: second / 10, gpus: [gpu()] }));
    }
    const past = model.history('cpu');
    expect(past.length).toBe(KEPT_S + 1);
    expect(past[past.length - 1][1]).toBeCloseTo(0.24);
    expect(model.history('gpu0-memory').length).toBe(KEPT_S + 1);
    expect(model.history('gpu7')).toEqual([]);
  });

  it('breaks the line where nobody looked, and drops it when the clock goes back', () => {
    const { model } = create();
    const shares = () => model.history('cpu').map(([, share]) => share);
    model.put(host({ time_ns: at(0), cpu: 10 }));
    model.put(host({ time_ns: at(1), cpu: 20 }));
    model.put(host({ time_ns: at(30), cpu: 30 }));
    expect(shares()).toEqual([0.1, 0.2, null, 0.3]);
    model.put(host({ time_ns: at(5), cpu: 40 }));
    expect(shares()).toEqual([0.4]);
  });

  it('forgets the past of a GPU that is gone, and tells of each reading', () => {
    const { model } = create();
    const changed = vi.fn();
    model.changed.connect(changed);
    model.put(host({ time_ns: at(0), gpus: [gpu()] }));
    model.put(host({ time_ns: at(1) }));
    expect(model.history('gpu0')).toEqual([]);
    expect(changed).toHaveBeenCalledTimes(2);
  });
});

describe('meters()', () => {
  it('gives load and memory of the machine and of each GPU', () => {
    const gpus = [gpu(), gpu({ device: 'gpu1' })];
    expect(meters(host({ gpus })).map(({ id, share }) => [id, share])).toEqual([
      ['cpu', 0.25],
      ['memory', 0.25],
      ['gpu0', 0.5],
      ['gpu0-memory', 0.25],
      ['gpu1', 0.5],
      ['gpu1-memory', 0.25]
    ]);
  });

  it('has no share of what gives no reading, and none beyond its ends', () => {
    const lost = gpu({ percent: null, memory_used: null });
    const shares = (over: Parameters<typeof host>[0]) =>
      meters(host(over)).map(({ share }) => share);
    expect(shares({ cpu: null, gpus: [lost] })).toEqual([
      null,
      0.25,
      null,
      null
    ]);
    expect(shares({ cpu: 140, memory_total: 0 })).toEqual([1, null]);
  });
});
