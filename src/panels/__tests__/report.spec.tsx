import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { act } from 'react';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FakeServer } from '../../api/__tests__/fake';
import type { IReport } from '../../api/wire';
import { CommandIDs } from '../../commands';
import { RunModel } from '../../model/run';
import { ReportPage } from '../report';
import { ReportButton, ReportState } from '../run/report';

const trans = nullTranslator.load('tdbg_lab');
const RUNNING: IReport = {
  job: 'j',
  progress: 0.5,
  message: 'Writing the report',
  state: 'running',
  result: null
};

describe('ReportState', () => {
  let client: FakeServer;
  let run: RunModel;
  let host: HTMLElement;
  let root: Root;
  const done: string[] = [];
  const button = (name: string): HTMLElement | undefined =>
    [...host.querySelectorAll('button')].find(
      each => (each.getAttribute('aria-label') ?? each.textContent) === name
    );

  beforeEach(() => {
    client = new FakeServer();
    run = new RunModel({ id: 'a', client });
    const commands = new CommandRegistry();
    const { writeReport, openReport, saveReport, saveReportNotebook } =
      CommandIDs;
    for (const id of [
      writeReport,
      openReport,
      saveReport,
      saveReportNotebook
    ]) {
      commands.addCommand(id, {
        describedBy: { args: { type: 'object', properties: {} } },
        execute: async args => {
          done.push(`${id} ${args['run']}`);
          if (id === writeReport) {
            await run.report.start();
          }
        }
      });
    }
    const props = { run, commands, trans };
    host = document.body.appendChild(document.createElement('div'));
    root = createRoot(host);
    act(() =>
      root.render(
        <>
          <ReportButton {...props} />
          <ReportState {...props} />
        </>
      )
    );
  });

  afterEach(() => {
    act(() => root.unmount());
    run.dispose();
    host.remove();
    done.length = 0;
  });

  it('shows how far it is, and can be cancelled', async () => {
    client.reports = [RUNNING];
    expect(host.querySelector('progress')).toBeNull();
    await act(async () => button('Report')?.click());
    expect(done).toEqual(['tdbg:write-report a']);
    expect(host.querySelector('progress')?.value).toBe(0.5);
    expect(button('Report')?.getAttribute('aria-disabled')).toBe('true');
    await act(async () => button('Cancel the report')?.click());
    expect(host.textContent).toContain('The report was cancelled.');
    expect(button('Report')?.getAttribute('aria-disabled')).toBe('false');
  });

  it('offers the page when it is written', async () => {
    const result = { file: 'first-report.html', bytes: 5_200_000 };
    client.reports = [{ ...RUNNING, state: 'done', progress: 1, result }];
    await act(async () => button('Report')?.click());
    expect(host.textContent).toContain('Report written:');
    expect(button('Download the report')?.title).toBe('5.2 MB');
    await act(async () => button('Open the report')?.click());
    await act(async () => button('Download the report')?.click());
    const notebook = button('Download the report as a notebook');
    await act(async () => notebook?.click());
    expect(done.slice(1)).toEqual([
      'tdbg:open-report a',
      'tdbg:save-report a',
      'tdbg:save-report-notebook a'
    ]);
  });

  it('says why there is none', async () => {
    client.reports = [{ ...RUNNING, state: 'failed', message: 'Disk full.' }];
    await act(async () => button('Report')?.click());
    expect(host.querySelector('[role=alert]')?.textContent).toBe(
      'Report: Disk full.'
    );
  });
});

describe('ReportPage', () => {
  it('locks the page up, and frees it when it is closed', () => {
    const freed = vi.fn();
    URL.createObjectURL = () => 'blob:page';
    URL.revokeObjectURL = freed;
    const page = new ReportPage(new Blob(['<p>page']), 'Report on first');
    const frame = page.node.querySelector('iframe');
    expect(frame?.getAttribute('title')).toBe('Report on first');
    expect(frame?.getAttribute('src')).toBe('blob:page');
    const allowed = frame?.getAttribute('sandbox')?.split(' ');
    expect(allowed).toEqual(['allow-scripts', 'allow-downloads']);
    page.dispose();
    page.dispose();
    expect(freed).toHaveBeenCalledExactlyOnceWith('blob:page');
  });
});
