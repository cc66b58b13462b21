/**
 * What a run is called.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { RunModel } from '../model/run';

/** Its name; a restored panel may be of a run that is gone, and whose name nobody knows. */
export function runName(run: RunModel, trans: TranslationBundle): string {
  if (run.state === 'missing' && !run.summary?.name) {
    return trans.__('Run not found');
  }
  return run.name;
}
