/**
 * The panel of the rules.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';

import { CommandIDs } from '../commands';
import { rulesIcon } from '../icons';
import type { RunModel } from '../model/run';
import { RULES_TILE } from '../panels/dashboard/layout';
import { RulesPanel } from '../panels/rules';
import { IPanelRegistry, ITdbgService } from '../tokens';
import { openInLab } from './lab';
import { RUN_ARGS, panelRun, targetRun } from './target';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:rules',
  description: 'Shows what the rules saw.',
  autoStart: true,
  requires: [ITdbgService, IPanelRegistry],
  optional: [ITranslator, ICommandPalette, ILayoutRestorer, ILabShell],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    panels: IPanelRegistry,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const tracker = new WidgetTracker<RulesPanel>({ namespace: 'tdbg-rules' });
    tracker.currentChanged.connect((_, panel) => {
      if (panel) {
        service.setCurrent(panel.run.id);
      }
    }, service);
    const create = (id: string, run: RunModel, isTile: boolean): RulesPanel =>
      new RulesPanel({ id, run, service, commands, panels, trans, isTile });
    panels.add({
      name: RULES_TILE,
      create: async run => create(`tdbg-rules-${UUID.uuid4()}`, run, true)
    });
    commands.addCommand(CommandIDs.openRules, {
      label: trans.__('Open Rules'),
      caption: trans.__('Show what the rules saw, with advice'),
      icon: rulesIcon,
      describedBy: { args: { type: 'object', properties: RUN_ARGS } },
      isEnabled: args => targetRun(app, service, args) !== undefined,
      execute: async args => {
        const id = await panelRun(app, service, args);
        if (id === undefined) {
          return;
        }
        if (!labShell) {
          openInLab(app, { run: id, open: 'rules', params: {} }, trans);
          return;
        }
        const open = tracker.find(found => found.run.id === id);
        if (open) {
          shell.activateById(open.id);
          return;
        }
        const panel = create(`tdbg-rules-${id}`, service.open(id), false);
        const mode = shell.currentWidget ? 'split-right' : 'tab-after';
        shell.add(panel, 'main', { mode });
        await tracker.add(panel);
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openRules,
        args: panel => ({ run: panel.run.id, restoring: true }),
        name: panel => panel.run.id
      });
    }
    palette?.addItem({
      command: CommandIDs.openRules,
      category: trans.__('Tensor Debugger')
    });
  }
};

export default plugin;
