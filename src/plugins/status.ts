/**
 * The item of the status bar.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../commands';
import { StatusItem } from '../panels/status';
import { ITdbgService } from '../tokens';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:status',
  description: 'Shows the current run in the status bar.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    statusBar: IStatusBar | null
  ): void => {
    if (!statusBar) {
      return;
    }
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const item = new StatusItem({
      service,
      trans,
      onClick: () => {
        void app.commands.execute(CommandIDs.openDashboard);
      },
      onFindings: () => {
        void app.commands.execute(CommandIDs.openRules);
      }
    });
    statusBar.registerStatusItem(plugin.id, {
      item,
      align: 'left',
      rank: 50,
      isActive: () => item.isActive,
      activeStateChanged: item.activeStateChanged
    });
  }
};

export default plugin;
