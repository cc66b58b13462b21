/**
 * What a run is called, and what is said of one that is not there.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IRunSummary } from '../api/wire';
import type { RunModel } from '../model/run';
import type { ITdbgService } from '../tokens';

/** Its name; a restored panel may be of a run that is gone, and whose name nobody knows. */
export function runName(run: RunModel, trans: TranslationBundle): string {
  if (run.state === 'missing' && !run.summary?.name) {
    return missingRun(run, trans);
  }
  return nameAt(run.name, run.where, trans);
}

/** A name, and where the run lies if other runs are called the same. */
export function nameAt(
  name: string,
  where: string,
  trans: TranslationBundle
): string {
  return where ? trans.__('%1 (%2)', isolated(name), isolated(where)) : name;
}

/** What the user is to take a run for, where a dialog asks about it. */
export function calledBy(
  service: ITdbgService,
  trans: TranslationBundle
): (run: IRunSummary) => string {
  return ({ id, name }) =>
    isolated(nameAt(name, service.runs.where(id), trans));
}

/** Letters of scripts that are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A name or path as it stands among other words: with a direction of its own, whatever its script. */
export function isolated(name: string): string {
  return RIGHT_TO_LEFT.test(name) ? `\u2068${name}\u2069` : name;
}

/** The title of a panel, with the name of its run before it where that has to be told. */
export function panelTitle(
  title: string,
  run: RunModel,
  tellsRun: boolean,
  trans: TranslationBundle
): string {
  return tellsRun
    ? trans.__('%1 · %2', isolated(runName(run, trans)), title)
    : title;
}

/** Why a run is missing: only one that was there can have been deleted; a folder may be out of reach. */
export function missingRun(run: RunModel, trans: TranslationBundle): string {
  return run.summary
    ? trans.__('This run was deleted')
    : trans.__('Run not found');
}
