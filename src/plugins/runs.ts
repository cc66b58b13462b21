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
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import {
  copyIcon,
  deleteIcon,
  editIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IRunSummary } from '../api/wire';
import { CommandIDs } from '../commands';
import { askText } from '../panels/ask';
import { isolated, nameAt } from '../panels/name';
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
    const add = runCommands(app.commands, target);
    addOpenCommands(add, service, trans);
    addEditCommands(add, service, trans, () =>
      app.commands.execute(CommandIDs.showSidebar)
    );
    addEndCommands(add, service, trans);
    const refresh = (): void => {
      [CommandIDs.profileRun, CommandIDs.stopRun, CommandIDs.deleteRun].forEach(
        id => {
          app.commands.notifyCommandChanged(id);
        }
      );
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
        CommandIDs.profileRun,
        CommandIDs.stopRun,
        CommandIDs.deleteRun
      ].forEach(command => palette.addItem({ command, category }));
    }
  }
};

/** Length of a profile, where none is given. */
const PROFILED_STEPS = 5;

/** Finds the run that arguments mean. */
type Target = (args: ReadonlyPartialJSONObject) => IRunSummary | undefined;

/** Adds a command about one run: what it does, and what else is to be said of it. */
type AddRunCommand = (id: string, options: IRunCommand) => void;

/** A command about one run. */
interface IRunCommand {
  readonly label: string;
  readonly caption: string;
  readonly icon?: LabIcon;
  /** Arguments besides those that name the run, as JSON schema. */
  readonly args?: ReadonlyPartialJSONObject;
  /** Whether it can be done now; always when left out. */
  readonly suits?: (run: IRunSummary) => boolean;
  readonly execute: (
    run: IRunSummary,
    args: ReadonlyPartialJSONObject
  ) => Promise<void> | void;
}

/** What all commands about one run have in common. */
function runCommands(commands: CommandRegistry, target: Target): AddRunCommand {
  return (id, { execute, suits, args: more, ...options }) => {
    commands.addCommand(id, {
      ...options,
      describedBy: {
        args: { type: 'object', properties: { ...RUN_ARGS, ...more } }
      },
      isEnabled: args => {
        const run = target(args);
        return run !== undefined && (suits?.(run) ?? true);
      },
      execute: async args => {
        const run = target(args);
        if (run) {
          await execute(run, args);
        }
      }
    });
  };
}

function addOpenCommands(
  add: AddRunCommand,
  service: ITdbgService,
  trans: TranslationBundle
): void {
  add(CommandIDs.openRun, {
    label: trans.__('Open Run'),
    caption: trans.__('Show the layers of the run in the side bar'),
    execute: run => service.setCurrent(run.id)
  });
  add(CommandIDs.copyPath, {
    label: trans.__('Copy Path of the Run'),
    caption: trans.__('Copy the path of the run, relative to its root'),
    icon: copyIcon,
    execute: run => Clipboard.copyToSystem(run.path)
  });
}

/** What the user is to take the run for, where a dialog asks about it. */
function calledBy(
  service: ITdbgService,
  trans: TranslationBundle
): (run: IRunSummary) => string {
  return ({ id, name }) =>
    isolated(nameAt(name, service.runs.where(id), trans));
}

function addEditCommands(
  add: AddRunCommand,
  service: ITdbgService,
  trans: TranslationBundle,
  showSidebar: () => Promise<void>
): void {
  const called = calledBy(service, trans);
  const okLabel = trans.__('Save');
  add(CommandIDs.renameRun, {
    label: trans.__('Rename Run'),
    caption: trans.__('Give the run another name'),
    icon: editIcon,
    args: { name: { type: 'string', description: 'The new name' } },
    execute: async (run, { name }) => {
      if (typeof name === 'string') {
        await askText(
          {
            title: trans.__('Name of %1', called(run)),
            label: trans.__('New name of the run'),
            text: name,
            isTyped: true,
            okLabel,
            save: text => service.edit(run.id, { name: text })
          },
          trans
        );
      } else {
        await showSidebar();
        service.runs.renaming = run.id;
      }
    }
  });
  add(CommandIDs.editTags, {
    label: trans.__('Edit Tags…'),
    caption: trans.__('Change the tags of the run'),
    execute: run =>
      askText(
        {
          title: trans.__('Tags of %1', called(run)),
          label: trans.__('Separated by commas'),
          text: run.tags.join(', '),
          okLabel,
          save: text => service.edit(run.id, { tags: splitTags(text) })
        },
        trans
      )
  });
  add(CommandIDs.editNote, {
    label: trans.__('Edit Note…'),
    caption: trans.__('Change the note of the run'),
    execute: run =>
      askText(
        {
          title: trans.__('Note on %1', called(run)),
          label: trans.__('What to remember of this run'),
          text: run.notes,
          isLong: true,
          okLabel,
          save: notes => service.edit(run.id, { notes })
        },
        trans
      )
  });
}

/** The tags in `text`, each once. */
function splitTags(text: string): ReadonlyArray<string> {
  const tags = text.split(',').map(tag => tag.trim());
  return [...new Set(tags.filter(Boolean))];
}

function addEndCommands(
  add: AddRunCommand,
  service: ITdbgService,
  trans: TranslationBundle
): void {
  const called = calledBy(service, trans);
  add(CommandIDs.profileRun, {
    label: trans.__('Profile the Next Steps'),
    caption: trans.__(
      'Record operators and Python functions of the next steps, while the training goes on'
    ),
    args: {
      steps: { type: 'number', description: 'Number of steps; 5 by default' }
    },
    suits: run => run.status === 'running',
    execute: (run, { steps }) =>
      service
        .open(run.id)
        .profiling.start(typeof steps === 'number' ? steps : PROFILED_STEPS)
  });
  add(CommandIDs.stopRun, {
    label: trans.__('Stop Training…'),
    caption: trans.__('Ask the training to stop after the present step'),
    icon: stopIcon,
    suits: run => run.status === 'running',
    execute: run =>
      askText(
        {
          title: trans.__('Stop %1?', called(run)),
          label: trans.__(
            'The training ends after the present step; what was saved stays. Reason (optional):'
          ),
          text: '',
          okLabel: trans.__('Stop training'),
          save: async reason => {
            await service.stop(run.id, reason);
            Notification.info(trans.__('%1 was asked to stop.', called(run)), {
              autoClose: 4000
            });
          }
        },
        trans
      )
  });
  add(CommandIDs.deleteRun, {
    label: trans.__('Delete Run…'),
    caption: trans.__('Delete the run and all its data'),
    icon: deleteIcon,
    suits: run => run.status !== 'running',
    execute: async run => {
      const answer = await showDialog({
        title: trans.__('Delete %1?', called(run)),
        body: trans.__(
          'The directory %1 and everything in it will be deleted. This cannot be undone.',
          isolated(run.path)
        ),
        buttons: [
          Dialog.cancelButton({ label: trans.__('Cancel') }),
          Dialog.warnButton({ label: trans.__('Delete') })
        ],
        defaultButton: 0
      });
      if (answer.button.accept) {
        await attempt(() => service.remove(run.id), trans);
      }
    }
  });
}

export default plugin;
