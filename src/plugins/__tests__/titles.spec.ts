import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import { describe, expect, it } from 'vitest';

import { FakeServer, FakeStream, summary } from '../../api/__tests__/fake';
import { PlotlyLoader } from '../../figure/plotly';
import { TdbgService } from '../../model/service';
import plugin from '../titles';
import { PanelRegistry } from '../../panels/registry';
import { RulesPanel } from '../../panels/rules';
import { ViewPanel } from '../../panels/view';

describe('titles of tabs', () => {
  const client = new FakeServer();
  client.list = [
    summary({ id: 'a', name: 'first' }),
    summary({ id: 'b', name: 'second' })
  ];
  const service = new TdbgService({ client, stream: new FakeStream() });
  client.list.forEach(one => service.open(one.id).setSummary(one));
  const trans = nullTranslator.load('tdbg_lab');
  const rules = (run: string): RulesPanel =>
    new RulesPanel({
      id: `rules-${run}`,
      run: service.open(run),
      service,
      commands: new CommandRegistry(),
      panels: new PanelRegistry({ createView: async () => picture('a') }),
      trans,
      isTile: false
    });
  const picture = async (run: string): Promise<ViewPanel> =>
    new ViewPanel({
      id: `view-${run}`,
      model: await service.figure(run, 'histogram', { tensor: 'x' }),
      service,
      loader: new PlotlyLoader(),
      trans
    });
  const layoutModified = new Signal<unknown, void>({});
  let tabs: Widget[] = [];
  const show = (...widgets: Widget[]): void => {
    tabs = widgets;
    layoutModified.emit();
  };
  void plugin.activate(
    {} as JupyterFrontEnd,
    { layoutModified, widgets: () => tabs } as unknown as ILabShell
  );

  it('tell the run while tabs of several runs are open, and only then', async () => {
    const [one, other] = [rules('a'), rules('b')];
    const view = await picture('a');
    show(one, view);
    expect(one.title.label).toBe('Rules');
    expect(view.title.label).toBe('Histogram: x');
    show(one, view, other);
    expect(one.title.label).toBe('first · Rules');
    expect(view.title.label).toBe('first · Histogram: x');
    expect(other.title.label).toBe('second · Rules');
    service.open('b').setSummary(summary({ id: 'b', name: 'renamed' }));
    expect(other.title.label).toBe('renamed · Rules');
    show(one, view);
    expect(one.title.label).toBe('Rules');
  });

  it('do not tell it in a dashboard, which is of one run', async () => {
    const [one, other] = [rules('a'), rules('b')];
    show(one, other);
    expect(one.title.label).toBe('first · Rules');
    show(other);
    expect(one.title.label).toBe('Rules');
  });

  it('tell where runs lie that have the same name', async () => {
    const [one, other] = [rules('a'), rules('b')];
    show(one, other);
    service.runs.setAll([
      summary({ id: 'a', name: 'cnn', path: 'monday/cnn' }),
      summary({ id: 'b', name: 'cnn', path: 'tuesday/cnn' })
    ]);
    service.runs.all.forEach(run => service.open(run.id).setSummary(run));
    expect(one.title.label).toBe('cnn (monday) · Rules');
    expect(other.title.caption).toBe('Rules of cnn (tuesday)');
    service.runs.remove('a');
    expect(other.title.label).toBe('cnn · Rules');
  });
});
