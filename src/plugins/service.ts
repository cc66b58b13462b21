/**
 * The service of the extension: connection, runs and settings, for all other plugins.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';

import { TdbgClient } from '../api/client';
import { RunStream } from '../api/stream';
import { openLiveRun } from '../model/liveRun';
import { TdbgService } from '../model/service';
import { ITdbgService } from '../tokens';

/** Where the small choices are kept between two sessions. */
const STATE_ID = 'tdbg-lab:service';

const plugin: JupyterFrontEndPlugin<ITdbgService> = {
  id: 'tdbg-lab:service',
  description:
    'Connects to the server and keeps all that is known of the runs.',
  autoStart: true,
  provides: ITdbgService,
  optional: [ISettingRegistry, IStateDB],
  activate: (
    app: JupyterFrontEnd,
    registry: ISettingRegistry | null,
    state: IStateDB | null
  ): ITdbgService => {
    const { serverSettings } = app.serviceManager;
    const service = new TdbgService({
      client: new TdbgClient({ serverSettings }),
      stream: new RunStream({ serverSettings })
    });
    if (registry) {
      registry
        .load(plugin.id)
        .then(settings => service.settings.attach(settings))
        .catch((error: unknown) => {
          console.error('The settings could not be loaded', error);
        });
    }
    const restored = state ? restoreCurrent(app, service, state) : app.restored;
    restored
      .catch((error: unknown) => {
        console.error('The last run could not be restored', error);
      })
      .finally(() => openLiveRun(service, () => isOursInFront(app)));
    service.start();
    return service;
  }
};

/** Whether a panel of the extension is in front of the main area. */
function isOursInFront({ shell }: JupyterFrontEnd): boolean {
  const classes = shell.currentWidget?.node.classList ?? [];
  return [...classes].some(name => name.startsWith('jp-Tdbg'));
}

/** Open the run that was open when the page was left, and remember which one is. */
async function restoreCurrent(
  app: JupyterFrontEnd,
  service: ITdbgService,
  state: IStateDB
): Promise<void> {
  await app.restored;
  const saved = (await state.fetch(STATE_ID)) as
    { current?: unknown } | undefined;
  const last = saved?.current;
  const isThere = typeof last === 'string' && !(await service.isGone(last));
  if (isThere && service.current === null) {
    service.setCurrent(last);
  }
  service.currentChanged.connect((_, run) => {
    void state.save(STATE_ID, { current: run?.id ?? null });
  }, service);
}

export default plugin;
