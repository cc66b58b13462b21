/**
 * The service of the extension: connection, runs and settings, for all other plugins.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { TdbgClient } from '../api/client';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:service',
  description: 'Connects to the Tensor Debugger server extension.',
  autoStart: true,
  activate: (app: JupyterFrontEnd): void => {
    void new TdbgClient({
      serverSettings: app.serviceManager.serverSettings
    });
  }
};

export default plugin;
