/**
 * The step cursor drawn over a figure: one line per axis of steps, to be dragged.
 */
import type { IDisposable } from '@lumino/disposable';

import type { StepCursor } from '../model/cursor';
import type { IPlotElement } from './plotly';
import { drawnAxis, drawnSpan } from './plotly';

const LINE_CLASS = 'jp-TdbgFigure-cursor';

/** Farthest a press may travel and still be a click, px. */
const CLICK_DISTANCE = 4;

/** Longest wait for a plot that is being drawn, animation frames. */
const MAX_FRAMES = 120;

/** Longest time between the clicks of a double click, ms. */
const DOUBLE_CLICK_MS = 250;

/**
 * Lines over the plot that show and set the cursor.
 *
 * #### Notes
 * They are elements above the plot, not shapes of it: moving them redraws nothing. They serve the
 * mouse; the slider below the picture does the same for the keyboard.
 */
export class CursorLine implements IDisposable {
  constructor(options: CursorLine.IOptions) {
    this._host = options.host;
    this._plot = options.plot;
    this._cursor = options.cursor;
    this._cursor.changed.connect(this.place, this);
    this._plot.addEventListener('pointerdown', this, true);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Names of the axes that carry steps; empty to draw nothing. */
  get axes(): ReadonlyArray<string> {
    return this._axes;
  }
  set axes(axes: ReadonlyArray<string>) {
    if (axes.join() !== this._axes.join()) {
      this._axes = axes;
      this._lines.forEach(line => line.remove());
      this._lines = axes.map(() => this._createLine());
    }
    this.place();
  }

  /**
   * Put the lines where the cursor stands.
   *
   * #### Notes
   * While Plotly draws, its axes are not laid out, and when it draws on its own account (a font
   * has arrived) it does not always tell that it is done. So the lines look again in the next
   * frames until the axes are there.
   */
  place(): void {
    this._waited = 0;
    this._place();
  }

  private _place(): void {
    cancelAnimationFrame(this._frame);
    const { step, following } = this._cursor;
    let isReady = true;
    this._axes.forEach((name, i) => {
      const line = this._lines[i];
      const axis = drawnAxis(this._plot, name);
      const x = axis && step >= 0 ? axis.d2p(step) : NaN;
      const inside = axis !== null && x >= -1 && x <= axis._length + 1;
      line.hidden = !inside || (following && !this._dragging);
      isReady &&= step < 0 || Number.isFinite(x);
      if (axis && inside) {
        const [top, height] = drawnSpan(this._plot, name);
        line.style.left = `${axis._offset + x}px`;
        line.style.top = `${top}px`;
        line.style.height = `${height}px`;
      }
    });
    if (!isReady && !following && this._waited < MAX_FRAMES) {
      this._waited += 1;
      this._frame = requestAnimationFrame(() => this._place());
    }
  }

  handleEvent(event: Event): void {
    switch (event.type) {
      case 'pointerdown':
        this._onPress(event as PointerEvent);
        break;
      case 'pointermove':
        this._onMove(event as PointerEvent);
        break;
      case 'pointerup':
        this._onRelease(event as PointerEvent);
        break;
      case 'pointercancel':
        this._end();
        break;
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._forgetClick();
    cancelAnimationFrame(this._frame);
    this._end();
    this._cursor.changed.disconnect(this.place, this);
    this._plot.removeEventListener('pointerdown', this, true);
    this._lines.forEach(line => line.remove());
  }

  private _createLine(): HTMLElement {
    const line = document.createElement('div');
    line.className = LINE_CLASS;
    line.hidden = true;
    line.addEventListener('pointerdown', this);
    this._host.appendChild(line);
    return line;
  }

  private _onPress(event: PointerEvent): void {
    if (event.button !== 0 || this._axes.length === 0) {
      return;
    }
    const index = this._lines.indexOf(event.currentTarget as HTMLElement);
    if (index >= 0) {
      event.preventDefault();
      event.stopPropagation();
      this._dragging = this._axes[index];
    } else {
      // The browser tells of no double click: Plotly covers the page while the button is down.
      const isSecond = this._clickTimer !== undefined;
      this._forgetClick();
      this._pressed = isSecond ? null : [event.clientX, event.clientY];
    }
    document.addEventListener('pointermove', this, true);
    document.addEventListener('pointerup', this, true);
    document.addEventListener('pointercancel', this, true);
  }

  private _onMove(event: PointerEvent): void {
    if (this._dragging) {
      event.preventDefault();
      this._setFrom(event, this._dragging);
    }
  }

  private _onRelease(event: PointerEvent): void {
    const pressed = this._pressed;
    if (pressed && !this._dragging) {
      const far = Math.hypot(
        event.clientX - pressed[0],
        event.clientY - pressed[1]
      );
      const name = far < CLICK_DISTANCE ? this._axisAt(event) : undefined;
      if (name !== undefined) {
        this._clickTimer = setTimeout(() => {
          this._clickTimer = undefined;
          this._setFrom(event, name);
        }, DOUBLE_CLICK_MS);
      }
    }
    this._end();
  }

  private _forgetClick(): void {
    clearTimeout(this._clickTimer);
    this._clickTimer = undefined;
  }

  private _end(): void {
    this._dragging = null;
    this._pressed = null;
    document.removeEventListener('pointermove', this, true);
    document.removeEventListener('pointerup', this, true);
    document.removeEventListener('pointercancel', this, true);
  }

  /** The axis above which the pointer is. */
  private _axisAt(event: PointerEvent): string | undefined {
    const box = this._plot.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return this._axes.find(name => {
      const axis = drawnAxis(this._plot, name);
      const [top, height] = drawnSpan(this._plot, name);
      return (
        axis !== null &&
        x >= axis._offset &&
        x <= axis._offset + axis._length &&
        y >= top &&
        y <= top + height
      );
    });
  }

  private _setFrom(event: PointerEvent, name: string): void {
    const axis = drawnAxis(this._plot, name);
    if (this._isDisposed || !axis) {
      return;
    }
    const left = this._plot.getBoundingClientRect().left + axis._offset;
    const pixel = Math.min(Math.max(event.clientX - left, 0), axis._length);
    const value = Number(axis.p2d(pixel));
    if (Number.isFinite(value)) {
      this._cursor.set(value);
    }
  }

  private _axes: ReadonlyArray<string> = [];
  private _clickTimer: ReturnType<typeof setTimeout> | undefined;
  private _cursor: StepCursor;
  private _dragging: string | null = null;
  private _frame = 0;
  private _host: HTMLElement;
  private _isDisposed = false;
  private _lines: HTMLElement[] = [];
  private _plot: IPlotElement;
  private _pressed: readonly [number, number] | null = null;
  private _waited = 0;
}

/** Statics of the line. */
export namespace CursorLine {
  /** What it needs. */
  export interface IOptions {
    /** The positioned element that holds `plot`. */
    readonly host: HTMLElement;
    /** The element Plotly draws into. */
    readonly plot: IPlotElement;
    /** The cursor to show and set. */
    readonly cursor: StepCursor;
  }
}
