import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { StepCursor } from '../../model/cursor';
import { CursorLine } from '../line';
import type { IPlotElement } from '../plotly';

/** A plot from 50 px to 150 px whose axis runs from 0 to 100. */
function createPlot(): IPlotElement {
  const plot = document.createElement('div') as unknown as IPlotElement;
  const xaxis = {
    _offset: 50,
    _length: 100,
    type: 'linear',
    range: [0, 100],
    d2p: (value: number) => value,
    p2d: (pixel: number) => pixel
  };
  return Object.assign(plot, {
    _fullLayout: { xaxis, _size: { t: 10, h: 200 }, _plots: {} }
  });
}

function pointer(type: string, x: number, y = 50): PointerEvent {
  return new MouseEvent(type, {
    bubbles: true,
    cancelable: true,
    button: 0,
    clientX: x,
    clientY: y
  }) as PointerEvent;
}

describe('CursorLine', () => {
  let host: HTMLElement;
  let plot: IPlotElement;
  let cursor: StepCursor;
  let line: CursorLine;
  const node = (): HTMLElement =>
    host.querySelector<HTMLElement>('.jp-TdbgFigure-cursor') as HTMLElement;

  beforeEach(() => {
    vi.useFakeTimers();
    host = document.createElement('div');
    plot = createPlot();
    host.appendChild(plot);
    document.body.appendChild(host);
    cursor = new StepCursor();
    cursor.setSteps([0, 20, 40, 60, 80, 100]);
    line = new CursorLine({ host, plot, cursor });
    line.axes = ['x'];
  });
  afterEach(() => {
    line.dispose();
    host.remove();
    vi.useRealTimers();
  });

  it('is hidden while the cursor follows, and stands at its step otherwise', () => {
    expect(node().hidden).toBe(true);
    cursor.set(40);
    expect(node().hidden).toBe(false);
    expect(node().style.left).toBe('90px');
    expect(node().style.height).toBe('200px');
  });

  it('appears when a plot that was being drawn is done without a word', () => {
    const layout = plot._fullLayout as { [name: string]: unknown };
    const { xaxis } = layout;
    layout['xaxis'] = { type: 'linear', range: [0, 100] };
    cursor.set(40);
    expect(node().hidden).toBe(true);
    vi.advanceTimersByTime(100);
    expect(node().hidden).toBe(true);
    layout['xaxis'] = xaxis;
    vi.advanceTimersByTime(20);
    expect(node().hidden).toBe(false);
    expect(node().style.left).toBe('90px');
  });

  it('does not wait for ever', () => {
    const frames = vi.spyOn(window, 'requestAnimationFrame');
    (plot._fullLayout as { [name: string]: unknown })['xaxis'] = undefined;
    cursor.set(40);
    vi.advanceTimersByTime(60_000);
    expect(frames.mock.calls.length).toBeLessThan(200);
    line.dispose();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('sets the cursor by a click, but not by a drag or a double click', () => {
    plot.dispatchEvent(pointer('pointerdown', 112));
    plot.dispatchEvent(pointer('pointerup', 112));
    vi.advanceTimersByTime(300);
    expect(cursor.step).toBe(60);
    plot.dispatchEvent(pointer('pointerdown', 70));
    plot.dispatchEvent(pointer('pointerup', 130));
    vi.advanceTimersByTime(300);
    expect(cursor.step).toBe(60);
    // Plotly covers the page during a press: the browser tells of no double click.
    for (const pause of [100, 300]) {
      plot.dispatchEvent(pointer('pointerdown', 70));
      document.dispatchEvent(pointer('pointerup', 70));
      vi.advanceTimersByTime(pause);
    }
    expect(cursor.step).toBe(60);
    plot.dispatchEvent(pointer('pointerdown', 70));
    document.dispatchEvent(pointer('pointerup', 70));
    vi.advanceTimersByTime(300);
    expect(cursor.step).toBe(20);
  });

  it('is dragged', () => {
    cursor.set(40);
    node().dispatchEvent(pointer('pointerdown', 90));
    document.dispatchEvent(pointer('pointermove', 131));
    expect(cursor.step).toBe(80);
    document.dispatchEvent(pointer('pointermove', 900));
    expect(cursor.step).toBe(100);
    document.dispatchEvent(pointer('pointerup', 900));
    document.dispatchEvent(pointer('pointermove', 60));
    expect(cursor.step).toBe(100);
  });

  it('leaves nothing behind', () => {
    line.dispose();
    line.dispose();
    expect(host.querySelector('.jp-TdbgFigure-cursor')).toBeNull();
    plot.dispatchEvent(pointer('pointerdown', 70));
    plot.dispatchEvent(pointer('pointerup', 70));
    vi.advanceTimersByTime(300);
    expect(cursor.following).toBe(true);
  });
});
