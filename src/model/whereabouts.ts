/**
 * Where runs lie, as far as it tells those of the same name apart.
 */
import type { IRunSummary } from '../api/wire';

/** Letters of an id that are told. */
const ID_LETTERS = 6;

/** For each run whose name others have too, by id: the folders in which it differs from them, or its id. */
export function whereabouts(
  runs: ReadonlyArray<IRunSummary>
): ReadonlyMap<string, string> {
  const byName = new Map<string, IRunSummary[]>();
  for (const run of runs) {
    const same = byName.get(run.name) ?? [];
    same.push(run);
    byName.set(run.name, same);
  }
  const found = new Map<string, string>();
  for (const same of byName.values()) {
    if (same.length > 1) {
      const places = same.map(placeOf);
      const shared = sharedFolders(places);
      same.forEach((run, i) => {
        const own = places[i].slice(shared);
        // A run mostly has the name of its own folder, which is told already.
        const isTold = own.length > 1 && own[own.length - 1] === run.name;
        const told = (isTold ? own.slice(0, -1) : own).join('/');
        found.set(run.id, told || run.id.slice(0, ID_LETTERS));
      });
    }
  }
  return found;
}

/** The folders that lead to a run, from its root on. */
function placeOf({ root, path }: IRunSummary): ReadonlyArray<string> {
  const folders = path.split('/').filter(folder => folder !== '.');
  return [root ?? '', ...folders];
}

/** Number of folders that all have in common from the start. */
function sharedFolders(places: ReadonlyArray<ReadonlyArray<string>>): number {
  const [first] = places;
  const differs = first.findIndex((folder, i) =>
    places.some(place => place[i] !== folder)
  );
  return differs < 0 ? first.length : differs;
}
