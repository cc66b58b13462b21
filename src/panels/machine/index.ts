/**
 * The section of the side bar that shows how busy the server's machine is.
 */
import { PanelWithToolbar } from '@jupyterlab/ui-components';

import type { IMachineProps } from './body';
import { MachineBody } from './body';

/** Title and meters. */
export class MachinePanel extends PanelWithToolbar {
  constructor(options: IMachineProps) {
    super();
    this.addClass('jp-TdbgSection');
    this.title.label = options.trans.__('Machine');
    this.toolbar.node.setAttribute(
      'aria-label',
      options.trans.__('Machine toolbar')
    );
    this.addWidget(new MachineBody(options));
  }
}
