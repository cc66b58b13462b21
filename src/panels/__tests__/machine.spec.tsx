import { nullTranslator } from '@jupyterlab/translation';
import { MessageLoop } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { gpu, host } from '../../api/__tests__/fake';
import { ConnectionModel } from '../../model/connection';
import { MachineModel } from '../../model/machine';
import { MachineBody } from '../machine/body';

const trans = nullTranslator.load('tdbg_lab');

describe('MachineBody', () => {
  let machine: MachineModel;
  let connection: ConnectionModel;
  let bar: Panel;
  let body: MachineBody;
  const watchHost = vi.fn<(on: boolean) => void>();
  const isAsked = (): boolean | undefined => watchHost.mock.lastCall?.[0];
  const meter = (name: string): HTMLElement | null =>
    body.node.querySelector(`[role="meter"][aria-label="${name}"]`);

  beforeEach(async () => {
    (
      globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
    ).IS_REACT_ACT_ENVIRONMENT = true;
    watchHost.mockReset();
    machine = new MachineModel({ watchHost });
    connection = new ConnectionModel();
    connection.set('live');
    body = new MachineBody({ service: { connection, machine }, trans });
    bar = new Panel();
    bar.addWidget(body);
    await act(async () => {
      Widget.attach(bar, document.body);
      MessageLoop.flush();
    });
  });
  afterEach(() => {
    act(() => bar.dispose());
    vi.restoreAllMocks();
  });

  it('has the machine read only while it is in sight', () => {
    expect(isAsked()).toBe(true);
    body.hide(); // the section is folded
    expect(isAsked()).toBe(false);
    body.show();
    expect(isAsked()).toBe(true);
    bar.hide(); // another side bar is shown
    expect(isAsked()).toBe(false);
    bar.show();
    vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    document.dispatchEvent(new Event('visibilitychange'));
    expect(isAsked()).toBe(false);
  });

  it('asks no more once it is disposed', () => {
    act(() => body.dispose());
    expect(isAsked()).toBe(false);
  });

  it('says what it waits for', async () => {
    expect(body.node.textContent).toBe('Reading the machine…');
    await act(async () => connection.set('stale'));
    expect(body.node.textContent).toContain('need a live connection');
  });

  it('shows meters to eyes, keyboard and screen reader', async () => {
    await act(async () => machine.put(host({ swap: 12.4 })));
    const cpu = meter('CPU')!;
    expect(cpu.getAttribute('aria-valuenow')).toBe('25');
    expect(cpu.getAttribute('aria-valuetext')).toBe('25 % of 8 cores');
    expect(cpu.tabIndex).toBe(0);
    expect(cpu.textContent).toBe('CPU25 %');
    const memory = meter('Memory')!;
    expect(memory.textContent).toBe('Memory8 / 32 GB');
    expect(memory.getAttribute('aria-valuetext')).toBe('8 / 32 GB; swap 12 %');
    expect(body.node.textContent).toContain('1 MB/s read · 2 MB/s written');
    expect(body.node.querySelectorAll('[role="meter"]').length).toBe(2);
  });

  it('draws the past as a line', async () => {
    await act(async () => machine.put(host({ time_ns: 1e18 })));
    expect(meter('CPU')!.querySelector('svg')).toBeNull();
    await act(async () => machine.put(host({ time_ns: 1e18 + 60e9, cpu: 50 })));
    await act(async () => machine.put(host({ time_ns: 1e18 + 61e9, cpu: 50 })));
    expect(meter('CPU')!.querySelector('svg path')).not.toBeNull();
  });

  it('names the GPUs, and says which one gives no reading', async () => {
    const lost = gpu({
      device: 'gpu1',
      percent: null,
      memory_used: null,
      temperature_c: null,
      power_w: null
    });
    await act(async () => machine.put(host({ gpus: [gpu(), lost] })));
    expect(meter('GPU 0')!.getAttribute('aria-valuenow')).toBe('50');
    expect(meter('GPU 0 memory')!.textContent).toBe('memory20 / 80 GB');
    expect(meter('GPU 1')).toBeNull();
    const { textContent } = body.node;
    expect(textContent).toContain('Fake A100 · 61 °C · 251 W');
    expect(textContent).toContain('GPU 1no reading');
  });

  it('says which GPU hangs, and why there is none', async () => {
    const silent = gpu({ device: 'gpu1', percent: null, answers: false });
    await act(async () => machine.put(host({ gpus: [gpu(), silent] })));
    expect(body.node.textContent).toContain('Fake A100 · does not answer');
    const problem = 'No NVIDIA driver was found: no GPU is read.';
    await act(async () => machine.put(host({ gpu_problem: problem })));
    expect(body.node.textContent).toContain(problem);
  });

  it('marks a memory that is nearly full', async () => {
    await act(async () => machine.put(host({ memory_used: 31e9 })));
    expect(meter('Memory')!.className).toContain('jp-mod-full');
    expect(meter('CPU')!.className).not.toContain('jp-mod-full');
  });
});
