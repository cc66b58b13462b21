import { describe, expect, it } from 'vitest';

import { FakeServer, settle } from '../../api/__tests__/fake';
import type { IReport } from '../../api/wire';
import { ReportModel } from '../report';
import { RunModel } from '../run';
import { asked, end } from './asked';

const answer = (over: Partial<IReport> = {}): IReport =>
  asked({ message: 'Writing the report', ...over });

const DONE = answer({
  state: 'done',
  progress: 1,
  result: { file: 'first-report.html', bytes: 5_200_000 }
});

function make(...reports: IReport[]): {
  client: FakeServer;
  model: ReportModel;
} {
  const client = new FakeServer();
  client.reports = reports;
  return { client, model: new ReportModel({ client, run: 'a', pollMs: 5 }) };
}

describe('ReportModel', () => {
  it('tells how far it is, and has the page when it is done', async () => {
    const { client, model } = make(answer(), answer({ progress: 0.7 }), DONE);
    const seen: number[] = [];
    model.changed.connect(() => seen.push(model.progress));
    await model.start();
    await model.start();
    await end(model);
    expect(model.state).toBe('done');
    expect(model.result?.file).toBe('first-report.html');
    expect(seen).toEqual([0, 0.5, 0.7, 1]);
    expect(client.asked.filter(what => what === 'report a')).toHaveLength(1);
    await expect(model.page()).resolves.toBeInstanceOf(Blob);
    expect(client.asked).toContain('reportPage j');
    model.dispose();
  });

  it('tells why it failed, and can be asked again', async () => {
    const { client, model } = make(DONE);
    client.failure = new Error('The disk is full.');
    await model.start();
    expect([model.state, model.message]).toEqual([
      'failed',
      'The disk is full.'
    ]);
    client.failure = null;
    await model.start();
    expect(model.state).toBe('done');
  });

  it('is cancelled by the user, and with the run', async () => {
    const client = new FakeServer();
    client.reports = [answer()];
    const run = new RunModel({ id: 'a', client });
    await run.report.start();
    await run.report.cancel();
    expect(run.report.state).toBe('cancelled');
    await run.report.start();
    run.dispose();
    await settle();
    expect(client.asked.filter(what => what === 'cancel j')).toHaveLength(2);
    expect(run.report.isDisposed).toBe(true);
  });

  it('is cancelled before the server has answered, and begun anew after that', async () => {
    const { client, model } = make(answer(), answer({ job: 'k' }), DONE);
    const first = model.start();
    while (client.asked.length === 0) {
      await Promise.resolve();
    }
    expect(model.state).toBe('queued');
    const cancelled = model.cancel();
    expect(model.state).toBe('cancelled');
    const second = model.start();
    await Promise.all([first, cancelled, second]);
    expect(client.asked.slice(0, 3)).toEqual([
      'report a',
      'cancel j',
      'report a'
    ]);
    await end(model);
    expect(model.state).toBe('done');
  });
});
