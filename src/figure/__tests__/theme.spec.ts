import type { JSONObject } from '@lumino/coreutils';
import { afterEach, describe, expect, it } from 'vitest';

import type { IFigureJson } from '../../api/wire';
import type { IFigureTheme } from '../theme';
import { readTheme, themed } from '../theme';

const THEME: IFigureTheme = {
  background: 'rgba(0,0,0,0)',
  text: 'text',
  muted: 'muted',
  grid: 'grid',
  line: 'line',
  surface: 'surface',
  border: 'border',
  font: 'font',
  fontSize: 11
};

describe('readTheme()', () => {
  afterEach(() => document.body.removeAttribute('style'));

  it('reads the variables in force, and has defaults', () => {
    document.body.style.setProperty('--jp-ui-font-color1', 'rgb(1, 2, 3)');
    const theme = readTheme(document.body);
    expect(theme.text).toBe('rgb(1, 2, 3)');
    expect(theme.grid).not.toBe('');
  });
});

describe('themed()', () => {
  const figure = {
    data: [
      { type: 'heatmap', z: [[1]], colorbar: { title: { text: 'share' } } },
      { type: 'scatter', x: [1], y: [2] }
    ],
    layout: {
      width: 700,
      height: 400,
      title: { text: 'conv1' },
      margin: { l: 60, t: 62, r: 4 },
      xaxis: { title: { text: 'Step' }, gridcolor: 'own' },
      yaxis2: { domain: [0, 0.5] },
      paper_bgcolor: 'white',
      template: { layout: { xaxis: { gridcolor: 'white', ticks: 'outside' } } }
    }
  };
  const { data, layout } = themed(figure as unknown as IFigureJson, THEME, {
    revision: 'r1',
    width: 600,
    height: 400
  });
  const template = layout['template'] as {
    layout: { xaxis: Record<string, unknown> };
  };

  it('gives words a halo of the colour behind them, not of their own', () => {
    const words = { type: 'scatter', textfont: { shadow: 'auto', size: 9 } };
    const figure = { data: [words], layout: {} } as unknown as IFigureJson;
    const frame = { revision: 'r1', width: 600, height: 400 };
    const font = themed(figure, THEME, frame).data[0]['textfont'];
    expect(font).toEqual({
      shadow: expect.stringContaining('1px surface'),
      size: 9
    });
  });

  it('leaves out labels of a y axis that would lie over each other', () => {
    const names = { tickvals: [3, 2, 1, 0], ticktext: ['a', 'b', 'c', 'd'] };
    const drawn = (height: number) =>
      themed({ data: [], layout: { yaxis: names } } as IFigureJson, THEME, {
        revision: '',
        width: 600,
        height
      }).layout['yaxis'];
    expect(drawn(400)).toMatchObject(names);
    expect(drawn(70)).toMatchObject({ tickvals: [3, 1] });
  });

  it('breaks the words of an empty picture to fit, and no annotation of others', () => {
    const annotations = [{ text: '<b>Nothing to be seen</b><br>Wait.' }];
    const drawn = (meta: JSONObject) =>
      themed(
        { data: [], layout: { annotations, meta } } as IFigureJson,
        THEME,
        {
          revision: 'r1',
          width: 150,
          height: 400
        }
      ).layout['annotations'] as { text: string }[];
    expect(drawn({ tdbg: { empty: true } })[0].text).toBe(
      '<b>Nothing to be</b><br><b>seen</b><br>Wait.'
    );
    expect(drawn({ tdbg: {} })).toEqual(annotations);
  });

  it('does not have every label measured against the frame', () => {
    expect(template.layout['xaxis']['ticklabeloverflow']).toBe('allow');
    expect(data[0]['colorbar']).toMatchObject({ ticklabeloverflow: 'allow' });
  });

  it('paints background and font with the theme', () => {
    expect(layout['paper_bgcolor']).toBe('rgba(0,0,0,0)');
    expect(layout['font']).toMatchObject({ color: 'text', family: 'font' });
  });

  it('colours axes through the template, so that what a view set wins', () => {
    expect(template.layout.xaxis).toMatchObject({
      gridcolor: 'grid',
      ticks: 'outside'
    });
    expect(layout['xaxis']).toMatchObject({ gridcolor: 'own' });
  });

  it('fits the panel: no size, no title, no more margin than needed', () => {
    expect(layout).not.toHaveProperty('width');
    expect(layout).not.toHaveProperty('height');
    expect(layout).not.toHaveProperty('title');
    expect(layout['margin']).toMatchObject({ l: 44, t: 14, r: 4 });
  });

  it('keeps zoom while the revision stays', () => {
    expect(layout['uirevision']).toBe('r1');
    expect(layout['yaxis2']).toMatchObject({ uirevision: 'r1' });
  });

  it('forgets a range that the view gives only now and then', () => {
    const revisionOf = (xaxis: JSONObject) =>
      themed({ data: [], layout: { xaxis } }, THEME, {
        revision: 'r1',
        width: 600,
        height: 400
      }).layout['xaxis'];
    expect(revisionOf({})).toMatchObject({ uirevision: 'r1' });
    expect(revisionOf({ range: [0, 1] })).not.toMatchObject({
      uirevision: 'r1'
    });
    expect(revisionOf({ range: [0, 1] })).toMatchObject({
      uirevision: (revisionOf({ range: [0, 2] }) as Record<string, unknown>)[
        'uirevision'
      ]
    });
  });

  it('colours the bars of heat maps and leaves other traces alone', () => {
    expect(data[0]['colorbar']).toMatchObject({
      title: { text: 'share', font: { color: 'muted' } }
    });
    expect(data[1]).toEqual(figure.data[1]);
  });

  it('drops in a small frame what would hide the picture', () => {
    const small = themed(
      {
        data: [],
        layout: {
          yaxis: { title: { text: 'Loss' }, domain: [0.5, 1] },
          yaxis2: { title: { text: 'Learning rate' }, domain: [0, 0.3] }
        }
      },
      THEME,
      { revision: 'r1', width: 280, height: 180 }
    ).layout;
    expect(small['showlegend']).toBe(false);
    expect(small['yaxis']).toMatchObject({ title: { text: 'Loss' } });
    expect(small['yaxis2']).toMatchObject({ title: { text: '' } });
    expect(layout).not.toHaveProperty('showlegend');
  });

  it('leaves a low frame to the picture: no colour bar, no title below it, no labels over each other', () => {
    const { data: traces, layout: low } = themed(
      {
        data: [{ type: 'heatmap', z: [[1]] }],
        layout: {
          xaxis: { title: { text: 'Step' } },
          yaxis: { domain: [0.7, 1] },
          yaxis2: { domain: [0, 0.6] }
        }
      } as unknown as IFigureJson,
      THEME,
      { revision: '', width: 400, height: 75 }
    );
    expect(traces[0]['showscale']).toBe(false);
    expect(low['margin']).toMatchObject({ t: 6, b: 20 });
    expect(low['xaxis']).toMatchObject({ title: { text: '' } });
    expect(low['yaxis']).toMatchObject({ showticklabels: false });
    expect(low['yaxis2']).toMatchObject({ nticks: 2 });
  });

  it('leaves the labels of a short colour bar room', () => {
    const tickvals = [7, 6, 5, 4, 3, 2, 1, 0];
    const bar = { tickvals, ticktext: tickvals.map(String) };
    const shown = (height: number) =>
      themed(
        {
          data: [{ type: 'heatmap', z: [[1]], colorbar: bar }],
          layout: {}
        } as unknown as IFigureJson,
        THEME,
        { revision: '', width: 400, height }
      ).data[0]['colorbar'];
    expect(shown(400)).toMatchObject(bar);
    expect(shown(150)).toMatchObject({ tickvals: [7, 5, 3, 1] });
  });

  it('leaves out the title of a colour bar that is longer than the axis beside it', () => {
    const title = { text: 'Share of elements' };
    const shown = (height: number) =>
      themed(
        {
          data: [{ type: 'heatmap', z: [[1]], colorbar: { title } }],
          layout: {}
        } as unknown as IFigureJson,
        THEME,
        { revision: '', width: 400, height }
      ).data[0]['colorbar'];
    expect(shown(300)).toMatchObject({ title });
    expect(shown(120)).toMatchObject({ title: { text: '' } });
  });

  it('leaves out the title of an x axis that is longer than the frame is wide', () => {
    const xaxis = { title: { text: 'Time since start (s)' } };
    const drawn = (width: number) =>
      themed({ data: [], layout: { xaxis } } as IFigureJson, THEME, {
        revision: '',
        width,
        height: 400
      }).layout['xaxis'];
    expect(drawn(138)).toMatchObject({ title: { text: '' } });
    expect(drawn(200)).toMatchObject(xaxis);
  });

  it('has no colour bar in a narrow frame, where names need the room', () => {
    const points = { type: 'scatter', marker: { color: [1], showscale: true } };
    const narrow = themed(
      { ...figure, data: [...figure.data, points] } as unknown as IFigureJson,
      THEME,
      { revision: 'r1', width: 200, height: 400 }
    );
    expect(narrow.data[0]?.['showscale']).toBe(false);
    expect(narrow.data[1]).toEqual(figure.data[1]);
    expect(narrow.data[2]?.['marker']).toEqual({
      color: [1],
      showscale: false
    });
  });

  it('does not touch the figure itself', () => {
    expect(figure.layout.paper_bgcolor).toBe('white');
    expect(figure.data[0].colorbar).toEqual({ title: { text: 'share' } });
  });
});
