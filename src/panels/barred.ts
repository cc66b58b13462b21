/**
 * A widget of the main area below a bar of controls.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import { Toolbar } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { Widget } from '@lumino/widgets';

/**
 * Bar and content, in the order of Tab.
 *
 * #### Notes
 * The bar stands where JupyterLab has room for a header, not in its toolbar: that one lets Tab reach
 * its first control only and takes the arrow keys for itself, which a slider needs.
 */
export class BarredPanel<T extends Widget> extends MainAreaWidget<T> {
  constructor(options: BarredPanel.IOptions<T>) {
    super({ content: options.content, toolbar: new Toolbar() });
    this.toolbar.hide();
    this.node.tabIndex = -1;
    soleLandmark(this);
    const { bar } = options;
    bar.addClass('jp-TdbgBar');
    bar.node.setAttribute('role', 'toolbar');
    bar.node.setAttribute('aria-label', options.barLabel);
    this.contentHeader.addWidget(bar);
  }

  /** The focus comes before the bar: the next Tab reaches its first control. */
  protected override onActivateRequest(_: Message): void {
    if (!this.node.contains(document.activeElement)) {
      this.node.focus();
    }
    this.content.activate();
  }
}

/** Make a panel one region: JupyterLab makes its content another, and calls that of all panels the same. */
export function soleLandmark({ node, content }: MainAreaWidget): void {
  node.setAttribute('role', 'region');
  content.node.removeAttribute('role');
  content.node.removeAttribute('aria-label');
}

/** Statics of the widget. */
export namespace BarredPanel {
  /** What it needs. */
  export interface IOptions<T extends Widget> {
    readonly content: T;
    readonly bar: Widget;
    /** What the bar is called. */
    readonly barLabel: string;
  }
}
