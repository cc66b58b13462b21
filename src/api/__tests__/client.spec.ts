import { ServerConnection } from '@jupyterlab/services';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { TdbgClient, describeError, httpStatus, mayPass } from '../client';

interface ICall {
  readonly url: string;
  readonly method: string;
  readonly body: string | null;
}

/** A client whose requests are answered by `answer` and kept in `calls`. */
function fakeClient(answer: () => Response) {
  const calls: ICall[] = [];
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: 'http://host/user/ada/',
    wsUrl: 'ws://host/user/ada/',
    token: 'secret',
    fetch: vi.fn(async (input: RequestInfo | URL) => {
      const request = input as Request;
      calls.push({
        // JupyterLab appends the time so that no cache answers.
        url: request.url.replace(/[?&]\d+$/, ''),
        method: request.method,
        body: request.body ? await request.text() : null
      });
      return answer();
    })
  });
  return { client: new TdbgClient({ serverSettings }), calls };
}

const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status });

describe('describeError()', () => {
  it('says of a server that is not reached that it does not answer, whatever the browser calls that', async () => {
    const { client } = fakeClient(() => {
      throw new TypeError('Failed to fetch');
    });
    const error: unknown = await client.runs().catch((told: unknown) => told);
    expect(describeError(error)).toBe('The server does not answer.');
  });
});

describe('TdbgClient', () => {
  let answer: () => Response;
  beforeEach(() => {
    answer = () => json({});
  });

  describe('#runs()', () => {
    it('asks below the base URL', async () => {
      const list = { runs: [{ id: 'a' }], truncated: false };
      const { client, calls } = fakeClient(() => json(list));
      await expect(client.runs()).resolves.toEqual(list);
      expect(calls[0].url).toBe('http://host/user/ada/tdbg/runs');
    });
  });

  describe('#figure()', () => {
    it('posts the parameters and escapes the names', async () => {
      const { client, calls } = fakeClient(() => answer());
      await client.figure('a/b', 'my view', { tensor: 'conv1' });
      expect(calls[0]).toEqual({
        url: 'http://host/user/ada/tdbg/runs/a%2Fb/views/my%20view',
        method: 'POST',
        body: '{"params":{"tensor":"conv1"}}'
      });
    });
  });

  describe('#remove()', () => {
    it('accepts an answer without a body', async () => {
      const { client, calls } = fakeClient(
        () => new Response(null, { status: 204 })
      );
      await expect(client.remove('a')).resolves.toBeUndefined();
      expect(calls[0].method).toBe('DELETE');
    });

    it('says what the server said when it refuses', async () => {
      const { client } = fakeClient(() =>
        json({ message: 'The run is still training.', reason: 'X' }, 409)
      );
      const error = await client.remove('a').catch((e: unknown) => e);
      expect(httpStatus(error)).toBe(409);
      expect(describeError(error)).toBe('The run is still training.');
      expect(mayPass(error)).toBe(false);
    });

    it('says in words that a proxy does not reach the server', async () => {
      const { client } = fakeClient(
        () => new Response('<html>502 Bad Gateway</html>', { status: 502 })
      );
      const error = await client.remove('a').catch((e: unknown) => e);
      expect(describeError(error)).toBe('The server does not answer.');
      expect(mayPass(error)).toBe(true);
    });
  });

  describe('#steps()', () => {
    it('passes the mode only when there is one', async () => {
      const { client, calls } = fakeClient(() => json({ steps: [0, 10] }));
      await client.steps('a');
      await client.steps('a', 'eval');
      expect(calls.map(call => call.url.split('/').pop())).toEqual([
        'steps',
        'steps?mode=eval'
      ]);
    });
  });
});
