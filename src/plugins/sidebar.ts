/**
 * The side bar.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';

import { CommandIDs } from '../commands';
import { logoIcon } from '../icons';
import { TdbgSidebar } from '../panels/sidebar';
import { ITdbgService } from '../tokens';
import { attempt } from './target';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:sidebar',
  description: 'Adds the side bar with the runs and their layers.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator, ICommandPalette, ILayoutRestorer, ILabShell],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const sidebar = new TdbgSidebar({ service, commands, trans });
    shell.add(sidebar, 'left', { rank: 600, type: 'Tensor Debugger' });
    restorer?.add(sidebar, 'tdbg-lab-sidebar');

    commands.addCommand(CommandIDs.showSidebar, {
      label: trans.__('Show Tensor Debugger'),
      caption: trans.__('Show the runs and their layers'),
      icon: logoIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        // A palette that closes gives the focus back first.
        await new Promise(resolve => setTimeout(resolve));
        shell.activateById(sidebar.id);
      }
    });
    commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Runs'),
      caption: trans.__('Look at all runs now'),
      icon: refreshIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => attempt(() => service.refresh(), trans)
    });
    if (palette) {
      const category = trans.__('Tensor Debugger');
      if (labShell) {
        // Elsewhere the application has this item for each side bar.
        palette.addItem({ command: CommandIDs.showSidebar, category });
      }
      palette.addItem({ command: CommandIDs.refresh, category });
    }
  }
};

export default plugin;
