/**
 * The commands that move the step cursor.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { CommandIDs } from '../commands';
import { followIcon, playIcon } from '../icons';
import type { StepCursor } from '../model/cursor';
import { ITdbgService } from '../tokens';
import { RUN_ARGS, targetRun } from './target';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:cursor',
  description: 'Adds the commands that move the step cursor.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const describedBy = { args: { type: 'object', properties: RUN_ARGS } };
    const cursor = (
      args: ReadonlyPartialJSONObject
    ): StepCursor | undefined => {
      const id = targetRun(app, service, args);
      return id === undefined ? undefined : service.open(id).cursor;
    };
    const isEnabled = (args: ReadonlyPartialJSONObject): boolean =>
      cursor(args) !== undefined;

    commands.addCommand(CommandIDs.follow, {
      label: trans.__('Follow the Run'),
      caption: trans.__('Show the latest step and stay there'),
      icon: followIcon,
      describedBy,
      isEnabled,
      isToggled: args => cursor(args)?.following === true,
      execute: args => cursor(args)?.follow()
    });
    commands.addCommand(CommandIDs.play, {
      label: trans.__('Play Through the Steps'),
      caption: trans.__('Move through the saved steps, or pause'),
      icon: playIcon,
      describedBy,
      isEnabled,
      isToggled: args => cursor(args)?.playing === true,
      execute: args => {
        const found = cursor(args);
        if (found?.playing) {
          found.pause();
        } else {
          found?.play();
        }
      }
    });
    commands.addCommand(CommandIDs.stepForward, {
      label: trans.__('Next Saved Step'),
      caption: trans.__('Move the step cursor one saved step on'),
      describedBy,
      isEnabled,
      execute: args => cursor(args)?.move(1)
    });
    commands.addCommand(CommandIDs.stepBack, {
      label: trans.__('Previous Saved Step'),
      caption: trans.__('Move the step cursor one saved step back'),
      describedBy,
      isEnabled,
      execute: args => cursor(args)?.move(-1)
    });
    const ids = [
      CommandIDs.follow,
      CommandIDs.play,
      CommandIDs.stepForward,
      CommandIDs.stepBack
    ];
    service.currentChanged.connect(() => {
      ids.forEach(id => commands.notifyCommandChanged(id));
    }, service);
    if (palette) {
      const category = trans.__('Tensor Debugger');
      ids.forEach(command => palette.addItem({ command, category }));
    }
  }
};

export default plugin;
