/**
 * What may be done with a run: open, rename, tag, note, stop, delete.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Clipboard, ICommandPalette } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { copyIcon, editIcon } from '@jupyterlab/ui-components';

import type { IRunSummary } from '../api/wire';
import { CommandIDs } from '../commands';
import { askText } from '../panels/ask';
import { calledBy } from '../panels/name';
import { ITdbgService } from '../tokens';
import { addEndCommands } from './end';
import type { AddRunCommand } from './runCommand';
import { runCommands } from './runCommand';
import { targetRun, targetRuns } from './target';

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
    const add = runCommands(app.commands, {
      one: args => {
        const run = service.runs.get(targetRun(app, service, args) ?? '');
        return run ? [run] : [];
      },
      several: args => targetRuns(app, service, args)
    });
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
      ),
    several: {
      label: count => trans.__('Edit Tags of %1 Runs…', count),
      execute: runs => askSharedTags(runs, service, trans)
    }
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

/** Ask for the tags that several runs share; those that only some of them have stay. */
async function askSharedTags(
  runs: ReadonlyArray<IRunSummary>,
  service: ITdbgService,
  trans: TranslationBundle
): Promise<void> {
  const shared = runs[0].tags.filter(tag =>
    runs.every(run => run.tags.includes(tag))
  );
  await askText(
    {
      title: trans.__('Tags of %1 runs', runs.length),
      label: trans.__(
        'Those that all of them have, separated by commas; what only some have stays'
      ),
      text: shared.join(', '),
      okLabel: trans.__('Save'),
      save: async text => {
        const wanted = splitTags(text);
        for (const { id, tags } of runs) {
          const own = tags.filter(tag => !shared.includes(tag));
          await service.edit(id, { tags: [...new Set([...own, ...wanted])] });
        }
      }
    },
    trans
  );
}

/** The tags in `text`, each once. */
function splitTags(text: string): ReadonlyArray<string> {
  const tags = text.split(',').map(tag => tag.trim());
  return [...new Set(tags.filter(Boolean))];
}

export default plugin;
