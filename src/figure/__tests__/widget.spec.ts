import { Widget } from '@lumino/widgets';
import { expect, it } from 'vitest';

import { FakeServer, FakeStream, settle } from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import type { IPlotly } from '../plotly';
import { PlotlyLoader } from '../plotly';
import { FigureWidget } from '../widget';

/** Layers and buttons, nested as those of Plotly are. */
class FakePlotly extends PlotlyLoader {
  override load(): Promise<IPlotly> {
    return Promise.resolve({
      react: async node => {
        node.innerHTML = `
          <svg class="main-svg"></svg>
          <div class="modebar-container"><button>Pan</button></div>
          <svg class="main-svg"><text>Legend</text></svg>`;
      },
      relayout: async () => undefined,
      purge: () => undefined,
      downloadImage: async () => undefined
    });
  }
}

it('is one image that tells the caption, with the buttons of Plotly beside it', async () => {
  const client = new FakeServer();
  const service = new TdbgService({ client, stream: new FakeStream() });
  const model = await service.figure('a', 'histogram', {});
  const hold = model.run.retain();
  const widget = new FigureWidget({
    model,
    loader: new FakePlotly(),
    settings: service.settings
  });
  Widget.attach(widget, document.body);
  await expect.poll(() => client.figures.length).toBe(1);
  client.figures[0].resolve({
    figure: { data: [], layout: {} },
    version: 1,
    pending: null,
    ms: 1
  });
  await expect
    .poll(() => widget.node.querySelectorAll('svg').length)
    .toBeGreaterThan(0);
  await settle();
  const image = widget.node.querySelector('[role="img"]');
  expect(image?.getAttribute('aria-label')).toBe('Histogram');
  expect(widget.node.querySelector('button')?.closest('[role]')).toBeNull();
  const text = widget.node.querySelector('text');
  expect(text?.closest('[aria-hidden="true"]')).not.toBeNull();
  widget.dispose();
  model.dispose();
  hold.dispose();
  service.dispose();
});
