/**
 * Which run a command is about.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { describeError } from '../api/client';
import type { IRunSummary } from '../api/wire';
import { patiently } from '../panels/patience';
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

/** What those take besides that can be done with several runs at once. */
export const RUNS_ARGS = {
  ...RUN_ARGS,
  runs: {
    type: 'array',
    items: { type: 'string' },
    description: 'Ids of several runs'
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

/** The runs that `args` mean: in the menu of one that is chosen, all that are. */
export function targetRuns(
  app: JupyterFrontEnd,
  service: ITdbgService,
  args: ReadonlyPartialJSONObject
): ReadonlyArray<IRunSummary> {
  const { runs, chosen } = service;
  const id = targetRun(app, service, args);
  if (id !== undefined && args['context'] === true && chosen.has(id)) {
    return chosen.all;
  }
  const ids = Array.isArray(args['runs']) ? args['runs'].map(String) : [id];
  return ids.flatMap(one => (one && runs.get(one)) || []);
}

/** A data attribute of the element whose context menu is open. */
export function targetData(
  app: JupyterFrontEnd,
  key: string
): string | undefined {
  return app.contextMenuHitTest(node => node.dataset[key] !== undefined)
    ?.dataset[key];
}

/**
 * Id of the run that `args` mean a panel of, if any.
 *
 * #### Notes
 * It rejects where a panel is restored whose run is gone: the restorer forgets what its command rejects.
 */
export async function panelRun(
  app: JupyterFrontEnd,
  service: ITdbgService,
  args: ReadonlyPartialJSONObject
): Promise<string | undefined> {
  const id = targetRun(app, service, args);
  if (id && args['restoring'] === true && (await service.isGone(id))) {
    throw new Error(`The run ${id} is gone.`);
  }
  return id;
}

/**
 * Do something the user asked for; tell when it fails.
 *
 * @param trans - tells in its words when it takes long, too; left out where that is seen
 */
export async function attempt(
  action: () => Promise<void>,
  trans?: TranslationBundle
): Promise<void> {
  try {
    await (trans ? patiently(action, trans) : action());
  } catch (error) {
    Notification.error(describeError(error), { autoClose: 6000 });
  }
}
