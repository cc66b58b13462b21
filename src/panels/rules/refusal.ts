/**
 * What the server says of thresholds that it does not take, in the words of the panel.
 */
import type { IThreshold } from '../../api/wire';
import { humanize } from '../../model/params';
import type { RecheckModel } from '../../model/recheck';
import type { IRuleRow } from '../../model/rules';

/** The threshold that the server did not take, if that is why it did not check. */
export function refusedOf(
  row: IRuleRow,
  thresholds: ReadonlyArray<IThreshold>,
  recheck: RecheckModel
): IThreshold | undefined {
  return recheck.state === 'failed'
    ? thresholds.find(({ name }) =>
        recheck.message.startsWith(parameter(row, name))
      )
    : undefined;
}

/** Why there was no check, with a threshold called as its field is. */
export function refusalOf(
  row: IRuleRow,
  thresholds: ReadonlyArray<IThreshold>,
  recheck: RecheckModel
): string {
  const refused = refusedOf(row, thresholds, recheck);
  return refused
    ? recheck.message.replace(
        parameter(row, refused.name),
        () => `${humanize(refused.name)} `
      )
    : recheck.message;
}

/** How the server begins what it says of a threshold. */
function parameter(row: IRuleRow, name: string): string {
  return `${row.rule}.${name} `;
}
