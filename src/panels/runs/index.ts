/**
 * The section of the side bar that lists the runs.
 */
import {
  PanelWithToolbar,
  CommandToolbarButton
} from '@jupyterlab/ui-components';

import { CommandIDs } from '../../commands';
import type { IRunsProps } from './body';
import { RunsBody } from './body';

/** Title, toolbar and list. */
export class RunsPanel extends PanelWithToolbar {
  constructor(options: IRunsProps) {
    super();
    const { commands, trans } = options;
    this.addClass('jp-TdbgSection');
    this.title.label = trans.__('Runs');
    this.toolbar.node.setAttribute('aria-label', trans.__('Runs toolbar'));
    this.toolbar.addItem(
      'refresh',
      new CommandToolbarButton({
        commands,
        id: CommandIDs.refresh,
        label: ''
      })
    );
    this.addWidget(new RunsBody(options));
  }
}
