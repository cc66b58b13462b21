/**
 * What tests of work on request have in common.
 */
import { settle } from '../../api/__tests__/fake';
import type { IAsked } from '../../api/wire';
import type { AskedModel } from '../asked';

/** Work that is half done, but for `over`. */
export function asked<R>(over: Partial<IAsked<R>> = {}): IAsked<R> {
  return {
    job: 'j',
    progress: 0.5,
    message: 'At it',
    state: 'running',
    result: null,
    ...over
  };
}

/** Wait until the server is done, or long enough. */
export async function end(model: AskedModel<unknown>): Promise<void> {
  for (let i = 0; i < 400 && model.isBusy; i++) {
    await settle(5);
  }
}
