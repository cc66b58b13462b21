/**
 * Which run a command is about.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { describeError } from '../api/client';
import type { ITdbgService } from '../tokens';

/** Arguments that most commands take, as JSON schema. */
export const RUN_ARGS = {
  run: {
    type: 'string',
    description: 'Id of the run; by default the current one'
  },
  context: {
    type: 'boolean',
    description: 'Whether the run is the one whose context menu is open'
  }
} as const;

/** Id of the run that `args` mean, if any. */
export function targetRun(
  app: JupyterFrontEnd,
  service: ITdbgService,
  args: ReadonlyPartialJSONObject
): string | undefined {
  if (typeof args['run'] === 'string') {
    return args['run'];
  }
  if (args['context'] === true) {
    return targetData(app, 'tdbgRun');
  }
  return service.current?.id;
}

/** A data attribute of the element whose context menu is open. */
export function targetData(
  app: JupyterFrontEnd,
  key: string
): string | undefined {
  return app.contextMenuHitTest(node => node.dataset[key] !== undefined)
    ?.dataset[key];
}

/** Refuse to restore the panel of a run that is gone: the restorer forgets what its command rejects. */
export async function rejectGone(
  service: ITdbgService,
  run: string
): Promise<void> {
  if (await service.isGone(run)) {
    throw new Error(`The run ${run} is gone.`);
  }
}

/** Do something the user asked for; tell when it fails. */
export async function attempt(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    Notification.error(describeError(error), { autoClose: 6000 });
  }
}
