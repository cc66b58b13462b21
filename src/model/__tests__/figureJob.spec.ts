import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FakeServer } from '../../api/__tests__/fake';
import { FigureJob } from '../figureJob';

const PENDING = { job: 'j', progress: 0.5, message: 'half' };

describe('FigureJob', () => {
  const onChanged = vi.fn();
  const onEnded = vi.fn();
  let job: FigureJob;
  const tell = (state: 'running' | 'done' | 'cancelled', id = 'j') =>
    job.handleMessage({
      type: 'job',
      job: id,
      state,
      progress: 0.7,
      message: ''
    });

  beforeEach(() => {
    vi.useFakeTimers();
    job = new FigureJob({ client: new FakeServer(), onChanged, onEnded });
    job.pending = PENDING;
  });
  afterEach(() => {
    job.dispose();
    vi.clearAllMocks();
    vi.useRealTimers();
  });

  it('tells how far it is, and once that it has ended', () => {
    tell('running');
    expect(job.pending?.progress).toBe(0.7);
    expect(onEnded).not.toHaveBeenCalled();
    tell('done');
    expect(job.pending).toBeNull();
    expect(onChanged).toHaveBeenCalledTimes(2);
    vi.advanceTimersByTime(5000);
    expect(onEnded).toHaveBeenCalledOnce();
  });

  it('does not begin again what was cancelled', () => {
    tell('cancelled');
    vi.advanceTimersByTime(5000);
    expect(job.pending).toBeNull();
    expect(onEnded).not.toHaveBeenCalled();
  });

  it('leaves other jobs alone', () => {
    tell('done', 'other');
    expect(job.pending).toEqual(PENDING);
  });

  it('counts as ended when it has been silent for long', () => {
    vi.advanceTimersByTime(1400);
    tell('running');
    vi.advanceTimersByTime(1400);
    expect(onEnded).not.toHaveBeenCalled();
    vi.advanceTimersByTime(200);
    expect(onEnded).toHaveBeenCalledOnce();
  });
});
