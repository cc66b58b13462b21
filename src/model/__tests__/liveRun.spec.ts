import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FakeServer, FakeStream, summary } from '../../api/__tests__/fake';
import { openLiveRun } from '../liveRun';
import { TdbgService } from '../service';

describe('openLiveRun', () => {
  let service: TdbgService;

  beforeEach(() => {
    service = new TdbgService({
      client: new FakeServer(),
      stream: new FakeStream()
    });
  });
  afterEach(() => service.dispose());

  it('opens the youngest run that is live, be it there already or not', () => {
    service.runs.setAll([summary({ id: 'old', status: 'finished' })]);
    openLiveRun(service);
    expect(service.current).toBeNull();
    service.runs.setAll([
      summary({ id: 'first', status: 'running', created_ns: 1 }),
      summary({ id: 'second', status: 'running', created_ns: 2 }),
      summary({ id: 'old', status: 'finished', created_ns: 3 })
    ]);
    expect(service.current?.id).toBe('second');
  });

  it('leaves the run alone that the user opened', () => {
    openLiveRun(service);
    service.setCurrent('mine');
    service.runs.put(summary({ id: 'other', status: 'running' }));
    expect(service.current?.id).toBe('mine');
  });

  describe('with an ended run that came back with the page', () => {
    const isFront = vi.fn<() => boolean>();

    beforeEach(() => {
      isFront.mockReturnValue(false);
      service.runs.setAll([
        summary({ id: 'mine', status: 'finished' }),
        summary({ id: 'other', status: 'running' })
      ]);
      service.setCurrent('mine');
      openLiveRun(service, isFront);
    });

    it('stays while nothing begins', () => {
      service.runs.put(
        summary({ id: 'other', status: 'running', last_step: 7 })
      );
      expect(service.current?.id).toBe('mine');
    });

    it('goes on to what begins', () => {
      service.runs.put(summary({ id: 'next', status: 'running' }));
      expect(service.current?.id).toBe('next');
    });

    it('stays while its pictures are in front', () => {
      isFront.mockReturnValue(true);
      service.runs.put(summary({ id: 'next', status: 'running' }));
      expect(service.current?.id).toBe('mine');
    });

    it('stays once the user has gone back to it', () => {
      service.setCurrent('other');
      service.setCurrent('mine');
      service.runs.put(summary({ id: 'next', status: 'running' }));
      expect(service.current?.id).toBe('mine');
    });
  });

  it('goes on to the next run once the open one has ended', () => {
    openLiveRun(service);
    service.runs.put(summary({ id: 'first', status: 'running' }));
    service.runs.put(summary({ id: 'first', status: 'finished' }));
    expect(service.current?.id).toBe('first');
    service.runs.put(summary({ id: 'second', status: 'running' }));
    expect(service.current?.id).toBe('second');
  });

  it('stays with the run that the user goes back to', () => {
    openLiveRun(service);
    service.runs.put(summary({ id: 'first', status: 'running' }));
    service.runs.put(summary({ id: 'first', status: 'finished' }));
    service.runs.put(summary({ id: 'second', status: 'running' }));
    service.setCurrent('first');
    service.runs.put(
      summary({ id: 'second', status: 'running', last_step: 7 })
    );
    expect(service.current?.id).toBe('first');
    service.runs.put(summary({ id: 'third', status: 'running' }));
    expect(service.current?.id).toBe('first');
  });
});
