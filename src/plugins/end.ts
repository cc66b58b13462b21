/**
 * What steers a training and ends a run: profile, stop, delete.
 */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { deleteIcon, stopIcon } from '@jupyterlab/ui-components';

import { describeError } from '../api/client';
import type { IRunSummary } from '../api/wire';
import { CommandIDs } from '../commands';
import { askText } from '../panels/ask';
import { calledBy, isolated } from '../panels/name';
import type { ITdbgService } from '../tokens';
import type { AddRunCommand } from './runCommand';
import { attempt } from './target';

/** Length of a profile, where none is given. */
const PROFILED_STEPS = 5;

/** More runs than this are not named one by one. */
const MOST_NAMED = 8;

/** Adds the commands. */
export function addEndCommands(
  add: AddRunCommand,
  service: ITdbgService,
  trans: TranslationBundle
): void {
  const called = calledBy(service, trans);
  const isLive = (run: IRunSummary): boolean => run.status === 'running';
  add(CommandIDs.profileRun, {
    label: trans.__('Profile the Next Steps'),
    caption: trans.__(
      'Record operators and Python functions of the next steps, while the training goes on'
    ),
    args: {
      steps: { type: 'number', description: 'Number of steps; 5 by default' }
    },
    suits: isLive,
    execute: (run, { steps }) =>
      service
        .open(run.id)
        .profiling.start(typeof steps === 'number' ? steps : PROFILED_STEPS)
  });
  add(CommandIDs.stopRun, {
    label: trans.__('Stop Training…'),
    caption: trans.__('Ask the training to stop after the present step'),
    icon: stopIcon,
    suits: isLive,
    execute: run =>
      askReason(
        {
          title: trans.__('Stop %1?', called(run)),
          done: trans.__('%1 was asked to stop.', called(run)),
          stop: reason => service.stop(run.id, reason)
        },
        trans
      ),
    several: {
      label: count => trans.__('Stop %1 Trainings…', count),
      execute: async (runs, meant) => {
        if (runs.length === 0) {
          Notification.info(trans.__('None of the %1 runs is live.', meant));
          return;
        }
        await askReason(
          {
            title: trans.__('Stop %1 trainings?', runs.length),
            done: trans.__('%1 trainings were asked to stop.', runs.length),
            stop: async reason => {
              for (const { id } of runs) {
                // One may have ended by itself meanwhile.
                if (service.runs.get(id)?.status === 'running') {
                  await service.stop(id, reason);
                }
              }
            }
          },
          trans
        );
      }
    }
  });
  add(CommandIDs.deleteRun, {
    label: trans.__('Delete Run…'),
    caption: trans.__('Delete the run and all its data'),
    icon: deleteIcon,
    suits: run => !isLive(run),
    execute: async run => {
      const isSure = await confirmDeletion(
        trans.__('Delete %1?', called(run)),
        trans.__(
          'The directory %1 and everything in it will be deleted. This cannot be undone.',
          isolated(run.path)
        ),
        trans
      );
      if (isSure) {
        await attempt(() => service.remove(run.id), trans);
      }
    },
    several: {
      label: count => trans.__('Delete %1 Runs…', count),
      execute: async (runs, meant) => {
        if (runs.length === 0) {
          Notification.warning(
            trans.__('All %1 runs are live: stop them first.', meant)
          );
          return;
        }
        const names = runs.slice(0, MOST_NAMED).map(called).join(', ');
        const more = runs.length - MOST_NAMED;
        const isSure = await confirmDeletion(
          trans.__('Delete %1 runs?', runs.length),
          [
            trans.__(
              '%1: their directories and everything in them will be deleted. This cannot be undone.',
              more > 0 ? trans.__('%1 and %2 more', names, more) : names
            ),
            meant > runs.length &&
              trans._n(
                '%1 that is live stays.',
                '%1 that are live stay.',
                meant - runs.length
              )
          ]
            .filter(Boolean)
            .join(' '),
          trans
        );
        if (isSure) {
          await attempt(() => removeAll(runs, service, trans), trans);
        }
      }
    }
  });
}

/** Ask whether and why a training is to be stopped, and stop it. */
function askReason(
  question: {
    readonly title: string;
    /** What is said afterwards. */
    readonly done: string;
    readonly stop: (reason: string) => Promise<void>;
  },
  trans: TranslationBundle
): Promise<void> {
  return askText(
    {
      title: question.title,
      label: trans.__(
        'The training ends after the present step; what was saved stays. Reason (optional):'
      ),
      text: '',
      okLabel: trans.__('Stop training'),
      save: async reason => {
        await question.stop(reason);
        Notification.info(question.done, { autoClose: 4000 });
      }
    },
    trans
  );
}

/** Whether the user wants to delete what `body` tells. */
async function confirmDeletion(
  title: string,
  body: string,
  trans: TranslationBundle
): Promise<boolean> {
  const answer = await showDialog({
    title,
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Delete') })
    ],
    defaultButton: 0
  });
  return answer.button.accept;
}

/** Delete one run after the other; what cannot be deleted does not keep the others. */
async function removeAll(
  runs: ReadonlyArray<IRunSummary>,
  service: ITdbgService,
  trans: TranslationBundle
): Promise<void> {
  const failures: string[] = [];
  for (const { id } of runs) {
    try {
      await service.remove(id);
    } catch (error) {
      failures.push(describeError(error));
    }
  }
  if (failures.length > 0) {
    throw new Error(
      trans._n(
        '%1 run could not be deleted: %2',
        '%1 runs could not be deleted, the first one because of this: %2',
        failures.length,
        failures[0]
      )
    );
  }
}
