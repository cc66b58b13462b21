/**
 * A figure made by the server, drawn by Plotly in the colours of the application.
 */
import type { JSONObject } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { FigureModel } from '../model/figure';
import type { TdbgSettings } from '../model/settings';
import { CursorLine } from './line';
import { clickedMoment } from './moment';
import type { IPlotElement, IPlotly, PlotlyLoader } from './plotly';
import { drawnAxis } from './plotly';
import { Room } from './room';
import { readTheme, themed } from './theme';

const CONFIG: JSONObject = {
  displaylogo: false,
  displayModeBar: 'hover',
  doubleClick: 'reset+autosize',
  modeBarButtonsToRemove: [
    'select2d',
    'lasso2d',
    'autoScale2d',
    'zoomIn2d',
    'zoomOut2d'
  ],
  responsive: false,
  // Nothing leaves the user's machines.
  showSendToCloud: false,
  plotlyServerURL: '',
  showTips: false
};

/** Over time, the wheel zooms, and a double click leads back to the latest. */
const TIME_CONFIG: JSONObject = {
  ...CONFIG,
  doubleClick: false,
  scrollZoom: true
};

/**
 * Draws the figure of a model whenever it changes, at most one drawing at a time.
 *
 * #### Notes
 * It marks its model active only while it can be seen, so that hidden figures cost nothing.
 */
export class FigureWidget extends Widget {
  constructor(options: FigureWidget.IOptions) {
    super();
    this.addClass('jp-TdbgFigure');
    this._model = options.model;
    this._loader = options.loader;
    this._settings = options.settings;
    this._plot = document.createElement('div') as IPlotElement;
    this._plot.className = 'jp-TdbgFigure-plot';
    this.node.appendChild(this._plot);
    this._line = new CursorLine({
      host: this.node,
      plot: this._plot,
      cursor: this._model.run.cursor
    });
    if (typeof ResizeObserver !== 'undefined') {
      this._observer = new ResizeObserver(() => this._onSize());
    }
    this._model.changed.connect(this._onModel, this);
    this._model.run.cursor.rangeChanged.connect(this._applyRange, this);
    this._isLinked = this._settings.linkRanges;
    this._settings.changed.connect(this._onSettings, this);
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._model.isActive = false;
    this._model.changed.disconnect(this._onModel, this);
    this._model.run.cursor.rangeChanged.disconnect(this._applyRange, this);
    this._settings.changed.disconnect(this._onSettings, this);
    this._line.dispose();
    this._plotly?.purge(this._plot);
    super.dispose();
  }

  /** Draw again in the present theme. */
  refreshTheme(): void {
    this._redraw();
  }

  /** Draw again, and measure what stands around the picture. */
  private _redraw(): void {
    this._room.forget();
    this._drawn = null;
    this.update();
  }

  /** Save the picture as a file. */
  async download(filename: string): Promise<void> {
    await this._plotly?.downloadImage(this._plot, {
      format: 'png',
      scale: 2,
      filename
    });
  }

  handleEvent(event: Event): void {
    if (event.type === 'visibilitychange') {
      this._updateActive();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    document.addEventListener('visibilitychange', this);
    this._observer?.observe(this.node);
    this._updateActive();
  }

  protected override onBeforeDetach(msg: Message): void {
    document.removeEventListener('visibilitychange', this);
    this._observer?.disconnect();
    this._model.isActive = false;
    super.onBeforeDetach(msg);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._updateActive();
    this.update();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._updateActive();
  }

  protected override onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    this._onSize();
  }

  protected override onUpdateRequest(msg: Message): void {
    super.onUpdateRequest(msg);
    if (this.isVisible) {
      void this._draw();
    }
  }

  /** The toolbar or the foot may have changed the room without a message. */
  private _onSize(): void {
    const { clientWidth, clientHeight } = this.node;
    if (clientWidth !== this._size[0] || clientHeight !== this._size[1]) {
      this._size = [clientWidth, clientHeight];
      this._isResized = true;
      this.update();
    }
  }

  private _updateActive(): void {
    this._model.isActive = this.isVisible && !document.hidden;
  }

  private _onModel(): void {
    if (this._model.figure !== this._drawn) {
      this.update();
    }
  }

  private async _draw(): Promise<void> {
    const { figure } = this._model;
    if (this._isDrawing || !figure) {
      this._isAgain = this._isDrawing;
      return;
    }
    this._isDrawing = true;
    this._isAgain = false;
    try {
      const plotly = (this._plotly ??= await this._loader.load());
      if (this.isDisposed) {
        return;
      }
      if (this._drawn !== figure || this._isResized) {
        // How much is written around the picture depends on its size.
        const { revision } = this._model;
        if (this._isResized || revision !== this._revision) {
          this._room.forget();
        }
        this._isResized = false;
        const { data, layout } = this._room.fit(
          themed(figure, readTheme(this.node), {
            revision,
            width: this.node.clientWidth,
            height: this.node.clientHeight
          })
        );
        const start = performance.now();
        const config = this._model.meta.axis === 'time' ? TIME_CONFIG : CONFIG;
        const drawing = plotly.react(this._plot, data, layout, config);
        // What follows is waiting, for images to be decoded, while other pictures are drawn.
        this._model.noteDrawing(performance.now() - start);
        await drawing;
        if (this.isDisposed) {
          plotly.purge(this._plot);
          return;
        }
        this._afterDraw(revision);
        this._drawn = figure;
        this._checkRoom();
        this._checkLegend(layout['showlegend'] !== false);
      }
      const { meta } = this._model;
      this._tell(meta.caption || this._model.view.title);
      this._line.axes = meta.axis === 'step' ? meta.xAxes : [];
    } catch (error) {
      console.error('The figure could not be drawn', error);
    } finally {
      this._isDrawing = false;
    }
    if (this._isAgain && !this.isDisposed) {
      this.update();
    }
  }

  /** Listen to the plot, once it exists; a new picture starts with the range of its run. */
  private _afterDraw(revision: string): void {
    if (!this._isListening) {
      this._isListening = true;
      this._plot.on?.('plotly_relayout', event => this._onRelayout(event));
      this._plot.on?.('plotly_doubleclick', () => this._onDoubleClick());
      this._plot.on?.('plotly_click', event => this._onClick(event));
      this._plot.on?.('plotly_afterplot', () => this._line.place());
    }
    if (revision !== this._revision) {
      this._revision = revision;
      if (this._model.run.cursor.range) {
        this._applyRange();
      }
    }
  }

  /** The picture as one image; the buttons that Plotly puts over it stand beside the image, not in it. */
  private _tell(label: string): void {
    const [picture, ...others] = this._plot.querySelectorAll('.main-svg');
    picture?.setAttribute('role', 'img');
    picture?.setAttribute('aria-label', label);
    // Legend, labels and what the mouse points at are layers of their own.
    others.forEach(layer => layer.setAttribute('aria-hidden', 'true'));
  }

  /** Longer labels need more room. */
  private _checkRoom(): void {
    if (!this._room.check(this._plot)) {
      this._redraw();
    }
  }

  /** Plotly puts a legend that comes back over the picture, and beside it only in the next drawing. */
  private _checkLegend(hasLegend: boolean): void {
    const isBack = hasLegend && !this._hadLegend;
    this._hadLegend = hasLegend;
    if (isBack) {
      this._redraw();
    }
  }

  /** The user has zoomed: take the others along. */
  private _onRelayout(event: unknown): void {
    this._line.place();
    this._checkRoom();
    const { meta, run } = this._model;
    if (this._isLinking || meta.axis === null) {
      return;
    }
    const update = event as { readonly [key: string]: unknown };
    const axis = drawnAxis(this._plot, meta.xAxes[0]);
    const key = `${meta.xAxes[0].charAt(0)}axis${meta.xAxes[0].slice(1)}`;
    if (!axis || !Object.keys(update).some(name => name.startsWith(key))) {
      return;
    }
    const [low, high] = axis.range.map(Number);
    const reset = update[`${key}.autorange`] === true;
    if (axis.type !== 'linear' || !Number.isFinite(low + high)) {
      return;
    }
    if (meta.axis === 'time') {
      // The server draws this part of the time anew, with all that is in it.
      this._model.showRange([low, high]);
    } else if (this._settings.linkRanges) {
      run.cursor.range = reset ? null : [low, high];
    }
  }

  /** Back to the latest, where the range is a part of the time. */
  private _onDoubleClick(): void {
    if (this._model.meta.axis === 'time') {
      this._model.showRange(null);
    }
  }

  /** A point that stands for a part of the time was clicked: the pictures over time show that part. */
  private _onClick(event: unknown): void {
    const moment = clickedMoment(event);
    if (moment) {
      const { run } = this._model;
      run.cursor.set(moment.step);
      run.time.value = moment.range;
    }
  }

  /** Pictures that zoom together again show the same steps from now on. */
  private _onSettings(): void {
    const { linkRanges } = this._settings;
    if (linkRanges !== this._isLinked) {
      this._isLinked = linkRanges;
      this._applyRange();
    }
  }

  /** Another picture was zoomed. */
  private _applyRange(): void {
    const { meta, run } = this._model;
    if (!this._plotly || meta.axis !== 'step' || !this._settings.linkRanges) {
      return;
    }
    const { range } = run.cursor;
    const update: JSONObject = {};
    for (const name of meta.xAxes) {
      const axis = drawnAxis(this._plot, name);
      const key = `${name.charAt(0)}axis${name.slice(1)}`;
      if (!axis || axis.type !== 'linear') {
        continue;
      }
      if (range === null) {
        update[`${key}.autorange`] = true;
      } else if (axis.range[0] !== range[0] || axis.range[1] !== range[1]) {
        update[`${key}.range`] = [range[0], range[1]];
      }
    }
    if (Object.keys(update).length > 0) {
      void this._relayout(update);
    }
  }

  private async _relayout(update: JSONObject): Promise<void> {
    this._isLinking = true;
    try {
      await this._plotly?.relayout(this._plot, update);
    } finally {
      this._isLinking = false;
    }
  }

  private _drawn: FigureModel['figure'] = null;
  private _hadLegend = true;
  private _isAgain = false;
  private _isDrawing = false;
  /** Whether pictures zoomed together when it was last looked at. */
  private _isLinked: boolean;
  private _isLinking = false;
  private _isListening = false;
  private _isResized = false;
  private _line: CursorLine;
  private _loader: PlotlyLoader;
  private _model: FigureModel;
  private _observer: ResizeObserver | null = null;
  private _plot: IPlotElement;
  private _plotly: IPlotly | null = null;
  private _revision = '';
  private _room = new Room();
  private _settings: TdbgSettings;
  private _size: readonly [number, number] = [0, 0];
}

/** Statics of the widget. */
export namespace FigureWidget {
  /** What it needs. */
  export interface IOptions {
    /** The figure; disposed by its owner, not by the widget. */
    readonly model: FigureModel;
    /** Where Plotly comes from. */
    readonly loader: PlotlyLoader;
    /** Whether ranges are linked. */
    readonly settings: TdbgSettings;
  }
}
