/**
 * What all commands about runs have in common.
 */
import type { LabIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IRunSummary } from '../api/wire';
import { RUNS_ARGS, RUN_ARGS } from './target';

/** Finds the runs that arguments mean. */
export type Targets = (
  args: ReadonlyPartialJSONObject
) => ReadonlyArray<IRunSummary>;

/** Adds a command about runs: what it does, and what else is to be said of it. */
export type AddRunCommand = (id: string, options: IRunCommand) => void;

/** A command about one run. */
export interface IRunCommand {
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
  /** The same for several runs at once, if that can be done. */
  readonly several?: ISeveral;
}

/** What a command is called and does where several runs are meant. */
export interface ISeveral {
  readonly label: (count: number) => string;
  /** Do it with those that suit, of so many that were meant: with none, or with two or more. */
  readonly execute: (
    runs: ReadonlyArray<IRunSummary>,
    meant: number
  ) => Promise<void>;
}

/**
 * Adds commands about the runs that `targets` finds.
 *
 * #### Notes
 * In the menu of one of several chosen runs, a command that cannot be done with several is about that one.
 */
export function runCommands(
  commands: CommandRegistry,
  targets: { readonly one: Targets; readonly several: Targets }
): AddRunCommand {
  return (
    id,
    { execute, several, suits = () => true, args: more, label, ...options }
  ) => {
    const meant = several ? targets.several : targets.one;
    commands.addCommand(id, {
      ...options,
      describedBy: {
        args: {
          type: 'object',
          properties: { ...(several ? RUNS_ARGS : RUN_ARGS), ...more }
        }
      },
      label: args => {
        const count = meant(args).filter(suits).length;
        return several && count > 1 ? several.label(count) : label;
      },
      isEnabled: args => meant(args).some(suits),
      execute: async args => {
        const runs = meant(args);
        const fit = runs.filter(suits);
        if (several && runs.length > 1 && fit.length !== 1) {
          await several.execute(fit, runs.length);
        } else if (runs.length > 0) {
          await execute(fit[0] ?? runs[0], args);
        }
      }
    });
  };
}
