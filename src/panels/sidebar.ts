/**
 * The side bar: connection, runs, current run, layers, machine.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { SidePanel } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { AccordionPanel } from '@lumino/widgets';

import { logoIcon } from '../icons';
import type { ITdbgService } from '../tokens';
import { ConnectionLine } from './connection';
import { LayersPanel } from './layers';
import { MachinePanel } from './machine';
import { RunPanel } from './run';
import { RunsPanel } from './runs';

/** Below this height of the window the machine is folded at first: runs and layers need the room, px. */
const LOW = 800;

/** Shares of the height that the sections begin with. */
const SHARES = [0.3, 0.22, 0.3, 0.18];

/** The same with the machine folded. */
const LOW_SHARES = [0.44, 0.24, 0.32, 0];

/** An open section with less than this share shows nothing. */
const LEAST_SHARE = 0.05;

/** Composition, and the height of each section. */
export class TdbgSidebar extends SidePanel {
  constructor(options: TdbgSidebar.IOptions) {
    super({ translator: undefined });
    const { service, trans } = options;
    this.id = 'tdbg-lab-sidebar';
    this.addClass('jp-TdbgSidebar');
    this.title.icon = logoIcon;
    this.title.caption = trans.__('Tensor Debugger');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Tensor Debugger'));
    this.header.addWidget(new ConnectionLine({ service, trans }));
    this.addWidget(new RunsPanel(options));
    this.addWidget(new RunPanel(options));
    this.addWidget(new LayersPanel(options));
    this.addWidget(new MachinePanel(options));
    if (this.content instanceof AccordionPanel) {
      this._layOut(this.content);
    }
  }

  override dispose(): void {
    this._observer?.disconnect();
    super.dispose();
  }

  /** Whoever calls it up by the keyboard goes on there, unless a name is being edited. */
  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    if (!this.node.contains(document.activeElement)) {
      this.node.querySelector('input')?.focus();
    }
  }

  /** As it is at first; what the layout of the application remembers is set afterwards. */
  private _layOut(content: AccordionPanel): void {
    if (window.innerHeight < LOW) {
      content.collapse(content.widgets.length - 1);
      content.setRelativeSizes(LOW_SHARES);
    } else {
      content.setRelativeSizes(SHARES);
    }
    content.expansionToggled.connect(this._onToggled, this);
    // The header takes its height when it is drawn and when its words change, and nobody tells the content.
    if (typeof ResizeObserver !== 'undefined') {
      this._observer = new ResizeObserver(() => content.update());
      this._observer.observe(content.node);
    }
  }

  /** A section that was folded when the page was loaded has no height to come back to. */
  private _onToggled(content: AccordionPanel, index: number): void {
    const sizes = content.relativeSizes();
    if (!content.widgets[index].isHidden && sizes[index] < LEAST_SHARE) {
      sizes[index] = SHARES[index];
      content.setRelativeSizes(sizes);
    }
  }

  private _observer: ResizeObserver | null = null;
}

/** Statics of the side bar. */
export namespace TdbgSidebar {
  /** What it needs. */
  export interface IOptions {
    readonly service: ITdbgService;
    readonly commands: CommandRegistry;
    readonly trans: TranslationBundle;
  }
}
