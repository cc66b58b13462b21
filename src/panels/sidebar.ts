/**
 * The side bar: connection, runs, current run, layers, machine.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { SidePanel } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { AccordionPanel } from '@lumino/widgets';

import { logoIcon } from '../icons';
import type { ITdbgService } from '../tokens';
import { ConnectionLine } from './connection';
import { LayersPanel } from './layers';
import { MachinePanel } from './machine';
import { RunPanel } from './run';
import { RunsPanel } from './runs';

/** Composition only. */
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
      this.content.setRelativeSizes([26, 22, 34, 18]);
    }
  }
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
