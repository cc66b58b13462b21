import { ServerConnection } from '@jupyterlab/services';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { RunStream } from '../stream';
import type { StreamMessage } from '../wire';

/** A socket that the test opens, fills and closes. */
class FakeSocket {
  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  static all: FakeSocket[] = [];

  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  readonly sent: unknown[] = [];

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(): void {
    this.onclose?.();
  }
}

function createStream(token = ''): RunStream {
  return new RunStream({
    serverSettings: ServerConnection.makeSettings({
      baseUrl: 'http://host/user/ada/',
      wsUrl: 'ws://host/user/ada/',
      token,
      appendToken: token !== '',
      WebSocket: FakeSocket as unknown as typeof WebSocket
    }),
    retryMs: 100,
    pingMs: 1000,
    standby: 'never'
  });
}

describe('RunStream', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    FakeSocket.all = [];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const last = (): FakeSocket => FakeSocket.all[FakeSocket.all.length - 1];
  const opened = async (stream: RunStream): Promise<void> => {
    stream.start();
    await vi.advanceTimersByTimeAsync(50);
    last().onopen?.();
  };

  it('connects below the base URL with the token', async () => {
    const stream = createStream('a b');
    await opened(stream);
    expect(last().url).toBe('ws://host/user/ada/tdbg/stream?token=a%20b');
    expect(stream.state).toBe('open');
    stream.dispose();
  });

  it('emits what is a message and nothing else', async () => {
    const stream = createStream();
    const heard: StreamMessage[] = [];
    stream.message.connect((_, message) => heard.push(message));
    const error = vi
      .spyOn(console, 'error')
      .mockImplementation(() => undefined);
    await opened(stream);
    last().onmessage?.({ data: '{"type":"runs"}' });
    last().onmessage?.({ data: 'not JSON' });
    last().onmessage?.({ data: '42' });
    expect(heard).toEqual([{ type: 'runs' }]);
    expect(error).toHaveBeenCalledTimes(1);
    stream.dispose();
  });

  it('opens another socket after one closed, and watches the same runs', async () => {
    const stream = createStream();
    await opened(stream);
    stream.watch(['a']);
    last().close();
    expect(stream.state).toBe('closed');
    await vi.advanceTimersByTimeAsync(2000);
    expect(FakeSocket.all.length).toBeGreaterThan(1);
    last().onopen?.();
    expect(last().sent).toContainEqual({ type: 'watch', runs: ['a'] });
    stream.dispose();
  });

  it('asks for the machine once, and again of another socket', async () => {
    const stream = createStream();
    stream.watchHost(true);
    await opened(stream);
    stream.watchHost(true);
    const asked = { type: 'host', on: true };
    const asks = (): unknown[] =>
      last().sent.filter(
        message => (message as { type: string }).type === 'host'
      );
    expect(asks()).toEqual([asked]);
    last().close();
    await vi.advanceTimersByTimeAsync(2000);
    last().onopen?.();
    expect(asks()).toEqual([asked]);
    stream.watchHost(false);
    expect(asks()).toEqual([asked, { type: 'host', on: false }]);
    stream.dispose();
  });

  it('waits longer and longer while it is refused', async () => {
    const stream = createStream();
    stream.start();
    for (let i = 0; i < 40; i++) {
      await vi.advanceTimersByTimeAsync(100);
      last()?.close();
    }
    expect(FakeSocket.all.length).toBeGreaterThan(1);
    expect(FakeSocket.all.length).toBeLessThan(20);
    stream.dispose();
  });

  it('closes a socket that does not answer a ping', async () => {
    const stream = createStream();
    await opened(stream);
    const socket = last();
    await vi.advanceTimersByTimeAsync(1000);
    expect(socket.sent).toContainEqual({ type: 'ping' });
    socket.onmessage?.({ data: '{"type":"pong"}' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(stream.state).toBe('open');
    socket.close = () => undefined; // the browser waits for the other end
    await vi.advanceTimersByTimeAsync(1000);
    expect(stream.state).toBe('closed');
    await vi.advanceTimersByTimeAsync(1000);
    expect(FakeSocket.all).toHaveLength(2);
    stream.dispose();
  });

  it('lets go of the socket when disposed, twice without harm', async () => {
    const stream = createStream();
    await opened(stream);
    const socket = last();
    stream.dispose();
    stream.dispose();
    expect(socket.onmessage).toBeNull();
    await vi.advanceTimersByTimeAsync(5000);
    expect(FakeSocket.all.length).toBe(1);
  });
});
