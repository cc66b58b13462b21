/**
 * The list of plugins of the extension; each lives in its own file of plugins/.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import service from './plugins/service';

const plugins: JupyterFrontEndPlugin<unknown>[] = [service];

export default plugins;
