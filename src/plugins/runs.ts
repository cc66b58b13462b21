/**
 * What may be done with a run: open, rename, tag, note, stop, delete.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  ICommandPalette,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  copyIcon,
  deleteIcon,
  editIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IRunSummary } from '../api/wire';
import { CommandIDs } from '../commands';
import { ITdbgService } from '../tokens';
import { RUN_ARGS, attempt, targetRun } from './target';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:runs',
  description: 'Adds the commands that open, edit, stop and delete runs.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const target: Target = args => {
      const id = targetRun(app, service, args);
      return id === undefined ? undefined : service.runs.get(id);
    };
    addOpenCommands(app, service, trans, target);
    addEditCommands(app, service, trans, target);
    addEndCommands(app, service, trans, target);
    const refresh = (): void => {
      [CommandIDs.stopRun, CommandIDs.deleteRun].forEach(id => {
        app.commands.notifyCommandChanged(id);
      });
    };
    service.currentChanged.connect(refresh, service);
    service.runs.changed.connect(refresh, service);
    if (palette) {
      const category = trans.__('Tensor Debugger');
      [
        CommandIDs.renameRun,
        CommandIDs.editTags,
        CommandIDs.editNote,
        CommandIDs.copyPath,
        CommandIDs.stopRun,
        CommandIDs.deleteRun
      ].forEach(command => palette.addItem({ command, category }));
    }
  }
};

/** Finds the run that arguments mean. */
type Target = (args: ReadonlyPartialJSONObject) => IRunSummary | undefined;

function addOpenCommands(
  app: JupyterFrontEnd,
  service: ITdbgService,
  trans: TranslationBundle,
  target: Target
): void {
  app.commands.addCommand(CommandIDs.openRun, {
    label: trans.__('Open Run'),
    caption: trans.__('Show the layers of the run in the side bar'),
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    execute: args => {
      const run = target(args);
      if (run) {
        service.setCurrent(run.id);
      }
    }
  });
  app.commands.addCommand(CommandIDs.copyPath, {
    label: trans.__('Copy Path of the Run'),
    caption: trans.__('Copy the path of the run, relative to its root'),
    icon: copyIcon,
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    isEnabled: args => target(args) !== undefined,
    execute: args => {
      const run = target(args);
      if (run) {
        Clipboard.copyToSystem(run.path);
      }
    }
  });
}

function addEditCommands(
  app: JupyterFrontEnd,
  service: ITdbgService,
  trans: TranslationBundle,
  target: Target
): void {
  const { commands } = app;
  commands.addCommand(CommandIDs.renameRun, {
    label: trans.__('Rename Run'),
    caption: trans.__('Give the run another name'),
    icon: editIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...RUN_ARGS,
          name: { type: 'string', description: 'The new name' }
        }
      }
    },
    isEnabled: args => target(args) !== undefined,
    execute: async args => {
      const run = target(args);
      if (!run) {
        return;
      }
      const { name } = args;
      if (typeof name === 'string') {
        await attempt(() => service.edit(run.id, { name }));
      } else {
        await commands.execute(CommandIDs.showSidebar);
        service.runs.renaming = run.id;
      }
    }
  });
  commands.addCommand(CommandIDs.editTags, {
    label: trans.__('Edit Tags…'),
    caption: trans.__('Change the tags of the run'),
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    isEnabled: args => target(args) !== undefined,
    execute: async args => {
      const run = target(args);
      if (!run) {
        return;
      }
      const answer = await InputDialog.getText({
        title: trans.__('Tags of %1', run.name),
        label: trans.__('Separated by commas'),
        text: run.tags.join(', '),
        okLabel: trans.__('Save')
      });
      if (answer.button.accept && answer.value !== null) {
        const tags = [
          ...new Set(
            answer.value
              .split(',')
              .map(tag => tag.trim())
              .filter(Boolean)
          )
        ];
        await attempt(() => service.edit(run.id, { tags }));
      }
    }
  });
  commands.addCommand(CommandIDs.editNote, {
    label: trans.__('Edit Note…'),
    caption: trans.__('Change the note of the run'),
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    isEnabled: args => target(args) !== undefined,
    execute: async args => {
      const run = target(args);
      if (!run) {
        return;
      }
      const answer = await InputDialog.getText({
        title: trans.__('Note on %1', run.name),
        text: run.notes,
        okLabel: trans.__('Save')
      });
      const notes = answer.value;
      if (answer.button.accept && notes !== null) {
        await attempt(() => service.edit(run.id, { notes }));
      }
    }
  });
}

function addEndCommands(
  app: JupyterFrontEnd,
  service: ITdbgService,
  trans: TranslationBundle,
  target: Target
): void {
  app.commands.addCommand(CommandIDs.stopRun, {
    label: trans.__('Stop Training…'),
    caption: trans.__('Ask the training to stop after the present step'),
    icon: stopIcon,
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    isEnabled: args => target(args)?.status === 'running',
    execute: async args => {
      const run = target(args);
      if (!run) {
        return;
      }
      const answer = await InputDialog.getText({
        title: trans.__('Stop %1?', run.name),
        label: trans.__(
          'The training ends after the present step; what was saved stays. Reason (optional):'
        ),
        okLabel: trans.__('Stop training')
      });
      if (answer.button.accept) {
        await attempt(async () => {
          await service.stop(run.id, answer.value ?? '');
          Notification.info(trans.__('%1 was asked to stop.', run.name), {
            autoClose: 4000
          });
        });
      }
    }
  });
  app.commands.addCommand(CommandIDs.deleteRun, {
    label: trans.__('Delete Run…'),
    caption: trans.__('Delete the run and all its data'),
    icon: deleteIcon,
    describedBy: { args: { type: 'object', properties: RUN_ARGS } },
    isEnabled: args => {
      const run = target(args);
      return run !== undefined && run.status !== 'running';
    },
    execute: async args => {
      const run = target(args);
      if (!run) {
        return;
      }
      const answer = await showDialog({
        title: trans.__('Delete %1?', run.name),
        body: trans.__(
          'The directory %1 and everything in it will be deleted. This cannot be undone.',
          run.path
        ),
        buttons: [
          Dialog.cancelButton({ label: trans.__('Cancel') }),
          Dialog.warnButton({ label: trans.__('Delete') })
        ],
        defaultButton: 0
      });
      if (answer.button.accept) {
        await attempt(() => service.remove(run.id));
        if (service.current?.id === run.id) {
          service.setCurrent(null);
        }
      }
    }
  });
}

export default plugin;
