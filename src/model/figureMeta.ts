/**
 * What a figure says about itself in `layout.meta.tdbg`.
 */
import type { JSONObject } from '@lumino/coreutils';

import type { IFigureJson, IViewInfo } from '../api/wire';

/** Facts of a figure that hosts read. */
export interface IFigureMeta {
  /** What runs along the x axis. */
  readonly axis: 'step' | 'time' | null;
  /** Names of the x axes that carry it: `x`, `x2`. */
  readonly xAxes: ReadonlyArray<string>;
  /** One sentence for the panel and for those who cannot see it. */
  readonly caption: string;
  /** The step it shows, where it shows one. */
  readonly step: number | null;
  /** The tensor it shows, where it shows one. */
  readonly tensor: string;
}

/** The facts of `figure`, a picture of `view`; it may say nothing, or not be there yet. */
export function figureMeta(
  figure: IFigureJson | null,
  view: IViewInfo
): IFigureMeta {
  const outer = figure?.layout?.['meta'] as JSONObject | undefined;
  const meta = (outer?.['tdbg'] ?? {}) as JSONObject;
  const axes = meta['x_axes'];
  return {
    axis:
      meta['axis'] === 'step' || meta['axis'] === 'time'
        ? meta['axis']
        : view.axis,
    xAxes: Array.isArray(axes) ? axes.map(String) : ['x'],
    caption: typeof meta['caption'] === 'string' ? meta['caption'] : '',
    step: typeof meta['step'] === 'number' ? meta['step'] : null,
    tensor: typeof meta['tensor'] === 'string' ? meta['tensor'] : ''
  };
}
