/**
 * The list of plugins of the extension; each lives in its own file of plugins/.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import cursor from './plugins/cursor';
import dashboard from './plugins/dashboard';
import findings from './plugins/findings';
import link from './plugins/link';
import report from './plugins/report';
import rules from './plugins/rules';
import runs from './plugins/runs';
import service from './plugins/service';
import sidebar from './plugins/sidebar';
import status from './plugins/status';
import titles from './plugins/titles';
import views from './plugins/views';

export * from './tokens';

const plugins = [
  service,
  sidebar,
  runs,
  cursor,
  views,
  rules,
  report,
  dashboard,
  findings,
  link,
  titles,
  status
] as JupyterFrontEndPlugin<unknown>[];

export default plugins;
