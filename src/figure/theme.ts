/**
 * The colours and fonts of a figure, read from the theme of the application when it is drawn.
 */
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { IFigureJson } from '../api/wire';
import { namesOf, shortNames, withoutOverlap } from './ticks';
import { fitWords } from './words';

/** Colours and fonts as the theme has them. */
export interface IFigureTheme {
  readonly background: string;
  readonly text: string;
  readonly muted: string;
  readonly grid: string;
  readonly line: string;
  readonly surface: string;
  readonly border: string;
  readonly font: string;
  /** px */
  readonly fontSize: number;
}

/** What the figure is drawn into. */
export interface IFigureFrame {
  /** Zoom and pan are kept while it stays the same. */
  readonly revision: string;
  /** px */
  readonly width: number;
  /** px */
  readonly height: number;
}

/** Below this, legends leave too little room for the picture, px. */
const COMPACT = { width: 300, height: 190 };

/** Below this, a colour bar leaves too little room for the picture and the names beside it, px. */
const NARROW = 240;

/** Below this, as most tiles of a dashboard are, long names take more than their share of the picture, px. */
const NARROW_FOR_NAMES = 480;

/** Below this, a colour bar has no room for its labels, and the title of the x axis takes it from the picture, px. */
const LOW = 110;

/** Length of a colour bar, as a share of the axis beside it. */
const BAR_SHARE = 0.85;

/** Width of a letter of an axis title, px. */
const LETTER = 6.2;

/** How far the middle of an x axis is from that of the frame, twice, px: labels stand on the left. */
const ASIDE = 48;

/** Read the theme in force at `node`. */
export function readTheme(node: Element = document.body): IFigureTheme {
  const style = getComputedStyle(node);
  const read = (name: string, fallback: string): string =>
    style.getPropertyValue(name).trim() || fallback;
  return {
    background: 'rgba(0,0,0,0)',
    text: read('--jp-ui-font-color1', '#212121'),
    muted: read('--jp-ui-font-color2', '#616161'),
    grid: read('--jp-tdbg-grid-color', '#e8e8e8'),
    line: read('--jp-border-color1', '#bdbdbd'),
    surface: read('--jp-layout-color1', '#ffffff'),
    border: read('--jp-border-color2', '#e0e0e0'),
    font: read('--jp-ui-font-family', 'system-ui, sans-serif'),
    fontSize: 11
  };
}

/**
 * `figure` in the colours of `theme`, ready to be drawn. The figure itself stays as it is.
 *
 * #### Notes
 * Most goes into the template, so that what a view set itself wins; backgrounds and the font are
 * always the host's. In a small frame the legend, colour bars, and titles and labels that would run into each other go.
 */
export function themed(
  figure: IFigureJson,
  theme: IFigureTheme,
  frame: IFigureFrame
): { data: ReadonlyArray<JSONObject>; layout: JSONObject } {
  const layout = figure.layout ?? {};
  const template = object(layout['template']);
  const axes = [
    ...new Set([
      'xaxis',
      'yaxis',
      ...Object.keys(layout).filter(key => /^[xy]axis\d*$/.test(key))
    ])
  ];
  const axis: JSONObject = {
    automargin: true,
    gridcolor: theme.grid,
    linecolor: theme.line,
    tickcolor: theme.line,
    zerolinecolor: theme.line,
    zerolinewidth: 1,
    tickfont: { color: theme.muted, size: theme.fontSize - 1 },
    // The margins leave room for all labels. Else Plotly measures each of them, in every drawing.
    ticklabeloverflow: 'allow',
    title: { font: { color: theme.muted, size: theme.fontSize }, standoff: 6 }
  };
  const sceneAxis: JSONObject = {
    ...axis,
    backgroundcolor: theme.background,
    showbackground: false
  };
  const colorbar: JSONObject = {
    outlinewidth: 0,
    thickness: 10,
    ticklabeloverflow: 'allow',
    tickfont: { color: theme.muted, size: theme.fontSize - 1 },
    title: { font: { color: theme.muted, size: theme.fontSize } }
  };
  const base = object(template['layout']);
  const scene = object(base['scene']);
  const templateLayout: JSONObject = {
    ...base,
    xaxis: merge(object(base['xaxis']), axis),
    yaxis: merge(object(base['yaxis']), axis),
    scene: {
      ...scene,
      xaxis: merge(object(scene['xaxis']), sceneAxis),
      yaxis: merge(object(scene['yaxis']), sceneAxis),
      zaxis: merge(object(scene['zaxis']), sceneAxis)
    },
    annotationdefaults: merge(object(base['annotationdefaults']), {
      font: { color: theme.muted },
      arrowcolor: theme.muted
    }),
    coloraxis: { colorbar },
    legend: {
      bgcolor: theme.background,
      font: { color: theme.muted, size: theme.fontSize - 1 }
    },
    hoverlabel: {
      bgcolor: theme.surface,
      bordercolor: theme.border,
      font: { color: theme.text, family: theme.font, size: theme.fontSize },
      align: 'left'
    }
  };
  const patched: JSONObject = {};
  for (const name of axes) {
    const own = object(layout[name]);
    // Zoom of this axis is forgotten with the rest, not when the view sets another range. A range
    // that comes and goes (an empty picture has one) would stay for good: Plotly takes it for a zoom.
    const kind = own['range'] === undefined ? '' : ' with a range';
    patched[name] = { ...own, uirevision: frame.revision + kind };
    const isVertical = name.startsWith('y');
    const length = axisLength(own, frame.height);
    const hasRoom = isVertical
      ? titleFits(own, length)
      : frame.height >= LOW && titleFits(own, frame.width - ASIDE);
    const names = namesOf(figure.data[0]?.['y']);
    const isNamed =
      own['type'] === 'category' && frame.width < NARROW_FOR_NAMES;
    patched[name] = {
      ...(isVertical
        ? withoutOverlap(object(patched[name]), length)
        : object(patched[name])),
      ...(isVertical && isNamed ? shortNames(names, length, frame.width) : {}),
      ...(hasRoom ? {} : { title: { text: '' } })
    };
  }
  const besideBar = axisLength({}, frame.height);
  const compact = frame.width < COMPACT.width || frame.height < COMPACT.height;
  const kept: JSONObject = { ...layout };
  // The panel has a size of its own.
  delete kept['width'];
  delete kept['height'];
  delete kept['transition'];
  // The panel's own title says it.
  delete kept['title'];
  return {
    data: figure.data
      .map(trace => withHalo(trace, theme.surface))
      .map(trace =>
        frame.width < NARROW || frame.height < LOW
          ? withoutColorbar(trace)
          : themedTrace(trace, colorbar, besideBar)
      ),
    layout: {
      ...kept,
      ...patched,
      ...words(layout, frame.width),
      autosize: true,
      datarevision: Date.now(),
      font: {
        ...object(layout['font']),
        color: theme.text,
        family: theme.font,
        size: theme.fontSize
      },
      legend: {
        ...object(layout['legend']),
        font: { size: theme.fontSize - 1 }
      },
      margin: tight(object(layout['margin']), frame.height < LOW),
      modebar: {
        bgcolor: theme.background,
        color: theme.muted,
        activecolor: theme.text
      },
      paper_bgcolor: theme.background,
      plot_bgcolor: theme.background,
      template: { ...template, layout: templateLayout },
      ...(compact ? { showlegend: false } : {}),
      uirevision: frame.revision
    }
  };
}

/** Traces that have a colour bar unless told otherwise. */
const WITH_COLORBAR = new Set(['heatmap', 'contour', 'histogram2d', 'surface']);

/** A colour bar of a trace is not reached by the template; its title may be as long as the axis beside it. */
function themedTrace(
  trace: JSONObject,
  colorbar: JSONObject,
  length: number
): JSONObject {
  const patched: JSONObject = { ...trace };
  const barOf = (own: JSONValue | undefined): JSONObject => {
    const bar = merge(colorbar, object(own));
    return {
      ...withoutOverlap(bar, BAR_SHARE * length),
      ...(titleFits(bar, length) ? {} : { title: { text: '' } })
    };
  };
  if (trace['colorbar'] || WITH_COLORBAR.has(String(trace['type']))) {
    patched['colorbar'] = barOf(trace['colorbar']);
  }
  const marker = object(trace['marker']);
  if (marker['colorbar'] || marker['showscale']) {
    patched['marker'] = {
      ...marker,
      colorbar: barOf(marker['colorbar'])
    };
  }
  return patched;
}

/** Words with a halo stand off from the points below them: Plotly's own is light or dark by the word's colour. */
function withHalo(trace: JSONObject, colour: string): JSONObject {
  const textfont = object(trace['textfont']);
  if (textfont['shadow'] !== 'auto') {
    return trace;
  }
  const shadow = ['1px 1px', '-1px -1px', '1px -1px', '-1px 1px']
    .map(corner => `${corner} 1px ${colour}`)
    .join(', ');
  return { ...trace, textfont: { ...textfont, shadow } };
}

/** The trace alone. */
function withoutColorbar(trace: JSONObject): JSONObject {
  const patched: JSONObject = { ...trace };
  if (WITH_COLORBAR.has(String(trace['type']))) {
    patched['showscale'] = false;
  }
  const marker = object(trace['marker']);
  if (marker['showscale']) {
    patched['marker'] = { ...marker, showscale: false };
  }
  return patched;
}

/** About how long a y axis is in a picture of that height, px. */
function axisLength(axis: JSONObject, height: number): number {
  const domain = axis['domain'];
  const share =
    Array.isArray(domain) && domain.length === 2
      ? Number(domain[1]) - Number(domain[0])
      : 1;
  return share * (height - (height < LOW ? 40 : 60));
}

/** Whether the title of an axis is no longer than the axis. */
function titleFits(axis: JSONObject, length: number): boolean {
  const title = axis['title'];
  const text = typeof title === 'string' ? title : object(title)['text'];
  return typeof text !== 'string' || text.length * LETTER <= length;
}

/** Room for what has no room of its own: axes, legends and colour bars push further by themselves. */
function tight(margin: JSONObject, isLow: boolean): JSONObject {
  const most: { readonly [side: string]: number } = {
    l: 44,
    r: 12,
    t: isLow ? 6 : 14,
    b: isLow ? 20 : 32
  };
  const kept: JSONObject = { ...margin };
  for (const side of Object.keys(most)) {
    const own = margin[side];
    kept[side] =
      typeof own === 'number' ? Math.min(own, most[side]) : most[side];
  }
  return kept;
}

function object(value: JSONValue | undefined): JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : {};
}

/** `base` with `over` laid upon it, objects within merged. */
function merge(base: JSONObject, over: JSONObject): JSONObject {
  const merged: JSONObject = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const old = merged[key];
    merged[key] =
      typeof old === 'object' && old !== null && !Array.isArray(old)
        ? merge(old, object(value))
        : value;
  }
  return merged;
}

/** The annotations of a figure that has words in place of a picture, in lines that fit; else nothing. */
function words(layout: JSONObject, width: number): JSONObject {
  const { annotations } = layout;
  const isEmpty = object(object(layout['meta'])['tdbg'])['empty'] === true;
  if (!isEmpty || !Array.isArray(annotations)) {
    return {};
  }
  const fitted = annotations.map(object).map(annotation => ({
    ...annotation,
    text: fitWords(String(annotation['text'] ?? ''), width)
  }));
  return { annotations: fitted };
}
