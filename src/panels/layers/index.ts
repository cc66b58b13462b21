/**
 * The section of the side bar that shows the layers of the current run.
 */
import { PanelWithToolbar } from '@jupyterlab/ui-components';

import type { ILayersProps } from './body';
import { LayersBody } from './body';

/** Title and tree. */
export class LayersPanel extends PanelWithToolbar {
  constructor(options: ILayersProps) {
    super();
    this.addClass('jp-TdbgSection');
    this.title.label = options.trans.__('Layers');
    this.toolbar.node.setAttribute(
      'aria-label',
      options.trans.__('Layers toolbar')
    );
    this.addWidget(new LayersBody(options));
  }
}
