/**
 * The section of the side bar about the current run.
 */
import { PanelWithToolbar } from '@jupyterlab/ui-components';

import type { IRunProps } from './body';
import { RunBody } from './body';

/** Title and facts. */
export class RunPanel extends PanelWithToolbar {
  constructor(options: IRunProps) {
    super();
    this.addClass('jp-TdbgSection');
    this.title.label = options.trans.__('Current run');
    this.toolbar.node.setAttribute(
      'aria-label',
      options.trans.__('Current run toolbar')
    );
    this.addWidget(new RunBody(options));
  }
}
