/**
 * Dashboards: all pictures of a run in one tab.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';
import { Debouncer } from '@lumino/polling';

import { CommandIDs } from '../commands';
import { dashboardIcon } from '../icons';
import { Dashboard } from '../panels/dashboard';
import { IPanelRegistry, ITdbgService } from '../tokens';
import { openInLab } from './lab';
import { RUN_ARGS, attempt, panelRun, targetRun } from './target';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:dashboard',
  description: 'Lays out all pictures of a run in one tab.',
  autoStart: true,
  requires: [ITdbgService, IPanelRegistry],
  optional: [
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    IStateDB,
    ILabShell
  ],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    panels: IPanelRegistry,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    labShell: ILabShell | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const tracker = new WidgetTracker<Dashboard>({
      namespace: 'tdbg-dashboard'
    });
    tracker.currentChanged.connect((_, dashboard) => {
      if (dashboard) {
        service.setCurrent(dashboard.run.id);
      }
    }, service);
    commands.addCommand(CommandIDs.openDashboard, {
      label: trans.__('Open Dashboard'),
      caption: trans.__('Show all pictures of the run in one tab'),
      icon: dashboardIcon,
      describedBy: { args: { type: 'object', properties: RUN_ARGS } },
      isEnabled: args => targetRun(app, service, args) !== undefined,
      execute: async args => {
        const id = await panelRun(app, service, args);
        if (id === undefined) {
          return;
        }
        if (args['restoring'] !== true) {
          service.setCurrent(id);
        }
        if (!labShell) {
          openInLab(app, { run: id, open: 'dashboard', params: {} }, trans);
          return;
        }
        await attempt(async () => {
          const open = tracker.find(found => found.run.id === id);
          if (open) {
            shell.activateById(open.id);
            return;
          }
          const dashboard = new Dashboard({
            id: `tdbg-dashboard-${id}`,
            run: service.open(id),
            service,
            commands,
            trans,
            panels
          });
          shell.add(dashboard, 'main');
          await tracker.add(dashboard);
          const isRestored = args['restoring'] === true;
          const filled = attempt(() => fill(dashboard, state, isRestored));
          // All of JupyterLab waits for the tabs that it restores, but not for their pictures.
          if (!isRestored) {
            await filled;
          }
        });
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openDashboard,
        args: dashboard => ({ run: dashboard.run.id, restoring: true }),
        name: dashboard => dashboard.run.id
      });
    }
    palette?.addItem({
      command: CommandIDs.openDashboard,
      category: trans.__('Tensor Debugger')
    });
  }
};

/**
 * Fill a dashboard as it was left, and remember how it is arranged from now on.
 *
 * #### Notes
 * Of one that nobody arranged, a reload keeps the pictures; opened anew, it begins with those that suit now.
 */
async function fill(
  dashboard: Dashboard,
  state: IStateDB | null,
  isRestored: boolean
): Promise<void> {
  const key = `tdbg-lab:dashboard:${dashboard.run.id}`;
  const saved = (await state?.fetch(key)) as JSONObject | undefined;
  const isAsItBegan = saved?.['isAsItBegan'] === true;
  const kept = saved && (isRestored || !isAsItBegan) ? saved : null;
  await dashboard.fill(kept);
  if (!state || dashboard.isDisposed) {
    return;
  }
  if (!kept) {
    await state.save(key, { ...dashboard.save(), isAsItBegan: true });
  }
  const saver = new Debouncer(() => state.save(key, dashboard.save()), 1000);
  dashboard.arranged.connect(() => {
    void saver.invoke();
  }, dashboard);
  dashboard.disposed.connect(() => saver.dispose(), dashboard);
}

export default plugin;
