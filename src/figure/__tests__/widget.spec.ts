import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { MessageLoop } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FakeServer, FakeStream, settle } from '../../api/__tests__/fake';
import type { FigureModel } from '../../model/figure';
import { TdbgService } from '../../model/service';
import type { IPlotly } from '../plotly';
import { PlotlyLoader } from '../plotly';
import { FigureWidget } from '../widget';

/** Layers, buttons and an axis, as those of Plotly are. */
class FakePlotly extends PlotlyLoader {
  readonly relayout = vi.fn(async () => undefined);
  /** For each drawing, whether the legend was left out. */
  readonly withoutLegend: boolean[] = [];

  override load(): Promise<IPlotly> {
    return Promise.resolve({
      react: async (node, _, layout) => {
        this.withoutLegend.push(layout['showlegend'] === false);
        node.innerHTML = `
          <svg class="main-svg"></svg>
          <div class="modebar-container"><button>Pan</button></div>
          <svg class="main-svg"><text>Legend</text></svg>`;
        const xaxis = {
          _offset: 0,
          _length: 100,
          type: 'linear',
          d2p: Number,
          p2d: Number,
          range: [0, 100]
        };
        Object.assign(node, { _fullLayout: { xaxis } });
      },
      relayout: this.relayout,
      purge: () => undefined,
      downloadImage: async () => undefined
    });
  }
}

describe('FigureWidget', () => {
  let service: TdbgService;
  let model: FigureModel;
  let hold: { dispose(): void };
  let plotly: FakePlotly;
  let widget: FigureWidget;

  beforeEach(async () => {
    const client = new FakeServer();
    service = new TdbgService({ client, stream: new FakeStream() });
    model = await service.figure('a', 'histogram', {});
    hold = model.run.retain();
    plotly = new FakePlotly();
    const { settings } = service;
    widget = new FigureWidget({ model, loader: plotly, settings });
    Widget.attach(widget, document.body);
    await vi.waitFor(() => expect(client.figures.length).toBe(1));
    client.figures[0].resolve({
      figure: { data: [], layout: {} },
      version: 1,
      pending: null,
      ms: 1
    });
    await vi.waitFor(() =>
      expect(widget.node.querySelector('svg')).not.toBeNull()
    );
    await settle();
  });
  afterEach(() => {
    widget.dispose();
    model.dispose();
    hold.dispose();
    service.dispose();
  });

  it('is one image that tells the caption, with the buttons of Plotly beside it', () => {
    const image = widget.node.querySelector('[role="img"]');
    expect(image?.getAttribute('aria-label')).toBe('Histogram');
    expect(widget.node.querySelector('button')?.closest('[role]')).toBeNull();
    const text = widget.node.querySelector('text');
    expect(text?.closest('[aria-hidden="true"]')).not.toBeNull();
  });

  it('draws a legend that comes back twice: at first it lies over the picture', async () => {
    const resize = async (size: number, drawings: number): Promise<void> => {
      Object.defineProperties(widget.node, {
        clientWidth: { value: size, configurable: true },
        clientHeight: { value: size, configurable: true }
      });
      const before = plotly.withoutLegend.length;
      MessageLoop.sendMessage(widget, Widget.ResizeMessage.UnknownSize);
      await vi.waitFor(() =>
        expect(plotly.withoutLegend.length).toBe(before + drawings)
      );
    };
    await resize(150, 1);
    await resize(600, 2);
    await resize(700, 1);
    const [small, ...large] = plotly.withoutLegend.slice(-4);
    expect([small, ...large]).toEqual([true, false, false, false]);
  });

  it('shows the steps that the other pictures show as soon as it is to zoom with them', () => {
    const set = (linkRanges: boolean): void =>
      service.settings.attach({
        composite: { linkRanges },
        changed: new Signal({})
      } as unknown as ISettingRegistry.ISettings);
    set(false);
    model.run.cursor.range = [10, 20];
    expect(plotly.relayout).not.toHaveBeenCalled();
    set(true);
    expect(plotly.relayout).toHaveBeenCalledExactlyOnceWith(expect.anything(), {
      'xaxis.range': [10, 20]
    });
    set(true);
    expect(plotly.relayout).toHaveBeenCalledOnce();
  });
});
