import { ServerConnection } from '@jupyterlab/services';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  FakeServer,
  FakeStream,
  finding,
  summary
} from '../../api/__tests__/fake';
import { TdbgService } from '../service';

describe('TdbgService', () => {
  let server: FakeServer;
  let stream: FakeStream;
  let service: TdbgService;
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  const count = (what: string): number =>
    server.asked.filter(asked => asked === what).length;

  beforeEach(() => {
    vi.useFakeTimers();
    server = new FakeServer();
    stream = new FakeStream();
    service = new TdbgService({
      client: server,
      stream,
      pollMs: 1000,
      standby: 'never'
    });
  });
  afterEach(() => {
    service.dispose();
    vi.useRealTimers();
  });

  it('lists the runs and is live once the socket is open', async () => {
    service.start();
    await pass(100);
    expect(service.runs.all.map(run => run.id)).toEqual(['a']);
    expect(service.connection.state).toBe('connecting');
    stream.setState('open');
    expect(service.connection.state).toBe('live');
  });

  it('looks from time to time without a socket, and hardly with one', async () => {
    service.start();
    await pass(10_000);
    const without = count('runs');
    expect(without).toBeGreaterThan(3);
    stream.setState('open');
    await pass(20_000);
    expect(count('runs') - without).toBeLessThanOrEqual(1);
  });

  it('says that the extension is missing', async () => {
    const response = new Response(null, { status: 404 });
    server.failure = new ServerConnection.ResponseError(response);
    service.start();
    await pass(100);
    expect(service.connection.state).toBe('missing');
    expect(stream.state).toBe('idle');
  });

  it('knows a run that is gone from a server that does not answer', async () => {
    const response = new Response(null, { status: 404 });
    const notFound = new ServerConnection.ResponseError(response);
    server.list = [summary()];
    const asked = vi.spyOn(server, 'run');
    expect(await Promise.all(['a', 'b'].map(id => service.isGone(id)))).toEqual(
      [false, true]
    );
    // Browsers write each answer "not found" to their console.
    expect(asked).not.toHaveBeenCalled();
    server.list = [];
    expect(await service.isGone('a')).toBe(true);
    server.unread = ['mounted']; // it may come back with that folder
    expect(await service.isGone('a')).toBe(false);
    server.unread = [];
    server.failure = notFound; // the whole extension is not there
    expect(await service.isGone('a')).toBe(false);
    server.failure = new TypeError('network');
    expect(await service.isGone('a')).toBe(false);
  });

  it('asks nothing of a run that is not in the list, until it is', async () => {
    server.list = [];
    server.unread = ['mounted'];
    service.start();
    await pass(100);
    stream.setState('open');
    expect(await service.isGone('a')).toBe(false);
    const run = service.open('a');
    run.retain();
    const figure = await service.figure('a', 'histogram', {});
    figure.isActive = true;
    await pass(3000);
    expect(run.state).toBe('missing');
    expect(server.asked).not.toContain('run');
    expect(server.asked).not.toContain('figure');
    expect(stream.watched).toEqual([]);

    server.list = [summary()];
    server.unread = [];
    stream.say({ type: 'runs' });
    await pass(3000);
    expect(run.state).toBe('ready');
    expect(server.asked).toContain('figure');
    expect(stream.watched).toEqual(['a']);
    figure.dispose();
  });

  it('waits for a view, but not for ever: all of JupyterLab waits for the tabs it restores', async () => {
    server.failure = new ServerConnection.ResponseError(
      new Response(null, { status: 502 })
    );
    const failed = vi.fn();
    service.views.load('histogram').catch(failed);
    const loaded = vi.fn();
    await pass(5000);
    expect(failed).not.toHaveBeenCalled();
    await pass(10_000);
    expect(failed).toHaveBeenCalledOnce();
    service.views.load('histogram').then(loaded, failed);
    server.failure = null;
    await pass(5000);
    expect(loaded).toHaveBeenCalledOnce();
  });

  it('is offline when the server does not answer, then recovers', async () => {
    service.start();
    await pass(100);
    server.failure = new TypeError('network');
    stream.setState('closed');
    await pass(3000);
    expect(service.connection.state).toBe('offline');
    server.failure = null;
    await pass(60_000);
    expect(service.connection.state).toBe('stale');
    expect(stream.reconnects).toBeGreaterThan(0);
    stream.setState('open');
    expect(service.connection.state).toBe('live');
  });

  it('tells a login that has expired from a server that does not answer', async () => {
    service.start();
    await pass(100);
    const response = new Response(null, { status: 403 });
    server.failure = new ServerConnection.ResponseError(response);
    stream.setState('closed');
    await pass(3000);
    expect(service.connection.state).toBe('denied');
    expect(service.connection.isStale).toBe(true);
    server.failure = null;
    await pass(60_000);
    expect(service.connection.state).toBe('stale');
  });

  it('reads again what it missed when the socket comes back', async () => {
    service.start();
    await pass(100);
    service.setCurrent('a');
    stream.setState('open');
    await pass(100);
    const before = count('run');
    stream.setState('closed');
    stream.setState('open');
    await pass(100);
    expect(count('run')).toBeGreaterThan(before);
  });

  it('watches the runs that somebody shows, and no others', async () => {
    service.start();
    await pass(100);
    service.setCurrent('a');
    expect(stream.watched).toEqual(['a']);
    service.setCurrent(null);
    expect(stream.watched).toEqual([]);
  });

  it('takes in what the stream says', async () => {
    service.start();
    await pass(100);
    service.setCurrent('a');
    stream.setState('open');
    await pass(100);
    stream.say({
      type: 'run',
      summary: summary({ status: 'running', last_step: 120 }),
      version: 8,
      last_step: 120
    });
    expect(service.runs.get('a')?.status).toBe('running');
    expect(service.current?.version).toBe(8);
    expect(service.current?.cursor.step).toBe(120);
    stream.say({ type: 'removed', id: 'a' });
    expect(service.runs.all).toEqual([]);
    expect(service.current?.state).toBe('missing');
  });

  it('does not keep runs that are gone and shown nowhere', () => {
    const kept = service.open('kept');
    const shown = service.open('shown');
    shown.retain();
    const gone = service.open('gone');
    stream.say({ type: 'removed', id: 'shown' });
    stream.say({ type: 'removed', id: 'gone' });
    expect(service.open('gone')).toBe(gone);
    for (let i = 0; i < 200; i++) {
      service.open(`other ${i}`);
    }
    expect(service.open('kept')).toBe(kept);
    expect(service.open('shown')).toBe(shown);
    expect(service.open('gone')).not.toBe(gone);
  });

  it('reads a run again that was out of reach for a while', async () => {
    service.start();
    await pass(100);
    service.setCurrent('a');
    stream.setState('open');
    await pass(3000);
    server.list = [];
    stream.say({ type: 'runs' });
    await pass(3000);
    expect(service.current?.state).toBe('missing');
    server.list = [summary()];
    stream.say({ type: 'runs' });
    await pass(6000);
    expect(service.current?.state).toBe('ready');
  });

  it('asks for the list at most once a second, however often it changes', async () => {
    service.start();
    await pass(100);
    stream.setState('open');
    await pass(2000);
    const before = count('runs');
    for (let i = 0; i < 50; i++) {
      stream.say({ type: 'runs' });
      await pass(40);
    }
    expect(count('runs') - before).toBeLessThanOrEqual(3);
    expect(count('runs') - before).toBeGreaterThanOrEqual(1);
  });

  it('tells each finding once, and again when it becomes worse', async () => {
    const told: string[] = [];
    service.findingAdded.connect((_, event) => told.push(event.finding.id));
    stream.say({ type: 'finding', run: 'a', finding: finding() });
    stream.say({
      type: 'finding',
      run: 'a',
      finding: finding({ step_last: 30 })
    });
    stream.say({ type: 'finding', run: 'b', finding: finding() });
    expect(told).toEqual(['f1', 'f1']);
    const worse = finding({ severity: 'critical' });
    stream.say({ type: 'finding', run: 'a', finding: worse });
    expect(told.length).toBe(3);
  });

  it('renames at once', async () => {
    service.start();
    await pass(100);
    await service.edit('a', { name: 'better' });
    expect(service.runs.get('a')?.name).toBe('better');
  });

  it('closes the run that was deleted, and none that could not be', async () => {
    service.start();
    await pass(100);
    service.setCurrent('a');
    server.failure = new Error('It is being written to.');
    await expect(service.remove('a')).rejects.toThrow('written');
    expect(service.current?.id).toBe('a');
    server.failure = null;
    await service.remove('a');
    expect(service.current).toBeNull();
    expect(service.runs.all).toEqual([]);
  });

  it('does not go back to an answer that was asked for earlier', async () => {
    service.start();
    await pass(100);
    const old = await server.run('a');
    let answer: (detail: typeof old) => void = () => undefined;
    vi.spyOn(server, 'run').mockImplementationOnce(
      () => new Promise(resolve => (answer = resolve))
    );
    service.setCurrent('a');
    await service.edit('a', { name: 'better' });
    expect(service.current?.name).toBe('better');
    answer(old);
    await pass(100);
    expect(service.current?.name).toBe('better');
  });

  it('can be disposed twice', () => {
    service.dispose();
    service.dispose();
    expect(stream.isDisposed).toBe(true);
  });
});
