import { ServerConnection } from '@jupyterlab/services';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FakeServer, param, summary, view } from '../../api/__tests__/fake';
import type { IFigureAnswer, IViewInfo } from '../../api/wire';
import { FigureModel } from '../figure';
import { RunModel } from '../run';
import { TdbgSettings } from '../settings';

const answer = (over: Partial<IFigureAnswer> = {}): IFigureAnswer => ({
  figure: { data: [], layout: {} },
  version: 1,
  pending: null,
  ms: 1,
  ...over
});

describe('FigureModel', () => {
  let server: FakeServer;
  let run: RunModel;
  let hold: { dispose(): void };
  let figure: FigureModel;

  const create = (info: IViewInfo = view()): FigureModel =>
    new FigureModel({
      run,
      view: info,
      client: server,
      settings: new TdbgSettings()
    });
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  beforeEach(async () => {
    vi.useFakeTimers();
    server = new FakeServer();
    run = new RunModel({ id: 'a', client: server, slowMs: 1e9 });
    hold = run.retain();
    await pass(0);
    figure = create();
  });
  afterEach(() => {
    figure.dispose();
    hold.dispose();
    run.dispose();
    vi.useRealTimers();
  });

  it('asks for nothing while inactive, and catches up', async () => {
    run.setVersion(5);
    await pass(1000);
    expect(server.figures.length).toBe(0);
    figure.isActive = true;
    await pass(300);
    expect(server.figures.length).toBe(1);
  });

  it('asks again by itself where the server was not reached, and not where it refused', async () => {
    figure.isActive = true;
    await pass(300);
    server.figures[0].reject(
      new ServerConnection.ResponseError(new Response(null, { status: 502 }))
    );
    await pass(100);
    expect(figure.error).toBe('The server does not answer.');
    await pass(5000);
    expect(server.figures.length).toBe(2);
    server.figures[1].reject(new Error('No such tensor.'));
    await pass(200_000);
    expect(server.figures.length).toBe(2);
  });

  it('asks again for what failed while the run was gone', async () => {
    figure.isActive = true;
    await pass(300);
    run.setMissing();
    server.figures[0].reject(new Error('There is no such run.'));
    await pass(300);
    run.setSummary(summary());
    await run.refresh();
    await pass(300);
    expect(server.figures.length).toBe(2);
  });

  it.each([
    ['run', 'b'],
    ['runs', ['b']]
  ] as const)(
    'follows what stands in a parameter of kind %s while somebody looks',
    async (kind, value) => {
      const other = new RunModel({ id: 'b', client: server, slowMs: 1e9 });
      const beside = new FigureModel({
        run,
        view: view({ params: [param({ name: 'other', kind })] }),
        client: server,
        settings: new TdbgSettings(),
        params: { other: value },
        open: () => other
      });
      expect(other.isRetained).toBe(false);
      beside.isActive = true;
      await pass(1000);
      expect(other.isRetained).toBe(true);
      expect(server.figures.length).toBe(1);
      server.figures[0].resolve(answer());
      other.setVersion(70);
      await pass(1000);
      expect(server.figures.length).toBe(2);
      server.figures[1].resolve(answer());
      beside.choose({ other: null });
      await pass(1000);
      expect(other.isRetained).toBe(false);
      const after = server.figures.length;
      server.figures[after - 1].resolve(answer());
      other.setVersion(80);
      await pass(1000);
      expect(server.figures.length).toBe(after);
      beside.choose({ other: value });
      beside.dispose();
      expect(other.isRetained).toBe(false);
      other.dispose();
    }
  );

  it('has one request under way, and asks once more for all that came meanwhile', async () => {
    figure.isActive = true;
    await pass(300);
    for (let version = 2; version < 50; version++) {
      run.setVersion(version);
      await pass(50);
    }
    expect(server.figures.length).toBe(1);
    server.figures[0].resolve(answer());
    await pass(300);
    expect(server.figures.length).toBe(2);
    server.figures[1].resolve(answer());
    await pass(5000);
    expect(server.figures.length).toBe(2);
  });

  it('shows the part of the time that another picture of the run was zoomed to', async () => {
    const timed = view({
      name: 'phases',
      axis: null,
      params: [param({ name: 'range', kind: 'seconds' })]
    });
    const phases = create(timed);
    const timeline = create({ ...timed, name: 'timeline', axis: 'time' });
    phases.isActive = true;
    await pass(300);
    const asked = () => server.figures[server.figures.length - 1];
    expect(asked().params).toEqual({});
    const before = phases.revision;
    timeline.showRange([3, 5]);
    asked().resolve(answer()); // aborted
    await pass(10);
    expect(asked().params).toEqual({ range: [3, 5] });
    expect(phases.revision).not.toBe(before);
    expect(phases.sharedRange).toEqual([3, 5]);
    expect(figure.sharedRange).toBeNull();
    phases.choose({ range: [1, 2] });
    expect(phases.params).toEqual({ range: [1, 2] });
    phases.choose({ range: null });
    timeline.showRange(null);
    expect(phases.params).toEqual({});
    phases.dispose();
    timeline.dispose();
  });

  it('keeps to the rate of the settings', async () => {
    figure.isActive = true;
    for (let i = 0; i < 100; i++) {
      run.setVersion(i + 10);
      await pass(20);
      server.figures.forEach(request => request.resolve(answer()));
    }
    // Two seconds at eight a second.
    expect(server.figures.length).toBeLessThanOrEqual(17);
    expect(server.figures.length).toBeGreaterThanOrEqual(13);
  });

  it('asks less often where drawing takes long, and for what moves slowly', async () => {
    const ask = async (shown: FigureModel, draws: number): Promise<number> => {
      const before = server.figures.length;
      shown.isActive = true;
      for (let i = 0; i < 200; i++) {
        run.setVersion(run.version + 1);
        await pass(20);
        const last = server.figures[server.figures.length - 1];
        last?.resolve(answer());
        shown.noteDrawing(draws);
      }
      shown.isActive = false;
      return server.figures.length - before;
    };
    expect(await ask(figure, 200)).toBeLessThanOrEqual(12);
    figure.dispose();
    figure = create(view({ axis: 'time' }));
    expect(await ask(figure, 1)).toBeLessThanOrEqual(5);
  });

  it('keeps a picture that has not changed', async () => {
    figure.dispose();
    figure = create(view({ axis: null }));
    figure.isActive = true;
    await pass(300);
    server.figures[0].resolve(answer());
    await pass(0);
    const first = figure.figure;
    run.setVersion(7);
    await pass(300);
    server.figures[1].resolve(answer({ version: 7 }));
    await pass(0);
    expect(figure.figure).toBe(first);
    run.setVersion(8);
    await pass(300);
    const other = answer({ figure: { data: [{}], layout: {} } });
    server.figures[2].resolve(other);
    await pass(0);
    expect(figure.figure).toBe(other.figure);
  });

  it('does not ask again when the cursor moves over its step axis', async () => {
    figure.isActive = true;
    await pass(300);
    server.figures[0].resolve(answer());
    await pass(300);
    run.cursor.set(10);
    await pass(1000);
    expect(server.figures.length).toBe(1);
  });

  it('asks for the step of the cursor when it shows one step', async () => {
    figure.dispose();
    figure = create(view({ axis: null }));
    figure.isActive = true;
    await pass(300);
    expect(server.figures[0].params).toEqual({});
    server.figures[0].resolve(answer());
    await pass(300);
    run.cursor.set(20);
    await pass(300);
    expect(server.figures[1].params).toEqual({ step: 20 });
    server.figures[1].resolve(answer());
    await pass(300);
    run.setVersion(9);
    await pass(1000);
    expect(server.figures.length).toBe(2);
  });

  it('keeps the last picture and says why there is no newer one', async () => {
    figure.isActive = true;
    await pass(300);
    const first = answer();
    server.figures[0].resolve(first);
    await pass(300);
    run.setVersion(2);
    await pass(300);
    server.figures[1].reject(new Error('No such tensor.'));
    await pass(0);
    expect(figure.figure).toBe(first.figure);
    expect(figure.error).toBe('No such tensor.');
  });

  it('drops the answer to parameters that are no longer chosen', async () => {
    figure.isActive = true;
    await pass(300);
    figure.choose({ tensor: 'x' });
    server.figures[0].resolve(answer());
    await pass(300);
    expect(figure.figure).toBeNull();
    expect(server.figures[1].params).toEqual({ tensor: 'x' });
  });

  it('sends defaults, and leaves the rest to the server', () => {
    figure.dispose();
    figure = create(
      view({
        params: [
          param(),
          param({ name: 'scale', kind: 'choice', default: 'log' })
        ]
      })
    );
    expect(figure.params).toEqual({ scale: 'log' });
    figure.choose({ tensor: 't', scale: null });
    expect(figure.params).toEqual({ tensor: 't', scale: 'log' });
  });

  describe('jobs', () => {
    const pending = { job: 'j', progress: 0.1, message: 'fitting' };

    beforeEach(async () => {
      figure.isActive = true;
      await pass(300);
      server.figures[0].resolve(answer({ pending }));
      await pass(0);
    });

    it('shows progress and does not start the job again as the run grows', async () => {
      run.setVersion(7);
      figure.handleMessage({
        type: 'job',
        job: 'j',
        progress: 0.5,
        message: '',
        state: 'running'
      });
      await pass(500);
      expect(figure.pending?.progress).toBe(0.5);
      expect(server.figures.length).toBe(1);
    });

    it('fetches the picture when the job is done', async () => {
      figure.handleMessage({
        type: 'job',
        job: 'j',
        progress: 1,
        message: '',
        state: 'done'
      });
      await pass(300);
      expect(server.figures.length).toBe(2);
      expect(figure.pending).toBeNull();
    });

    it('asks by itself when the stream is silent', async () => {
      await pass(2000);
      expect(server.figures.length).toBe(2);
    });

    it('can be given up', async () => {
      await figure.cancel();
      expect(server.asked).toContain('cancel j');
      expect(figure.pending).toBeNull();
      await pass(5000);
      expect(server.figures.length).toBe(1);
    });
  });

  it('reads what the figure says about itself', async () => {
    figure.isActive = true;
    await pass(300);
    server.figures[0].resolve(
      answer({
        figure: {
          data: [],
          layout: {
            meta: {
              tdbg: { caption: 'Grows.', x_axes: ['x', 'x2'], tensor: 't' }
            }
          }
        }
      })
    );
    await pass(0);
    expect(figure.meta).toEqual({
      axis: 'step',
      xAxes: ['x', 'x2'],
      caption: 'Grows.',
      step: null,
      tensor: 't'
    });
  });
});
