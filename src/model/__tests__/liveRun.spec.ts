import { afterEach, beforeEach, describe, expect, it } from 'vitest';

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

  it('leaves the run alone that is open', () => {
    service.setCurrent('mine');
    openLiveRun(service);
    service.runs.put(summary({ id: 'other', status: 'running' }));
    expect(service.current?.id).toBe('mine');
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
