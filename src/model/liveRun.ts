/**
 * What the side bar shows before anybody has chosen a run, and after the one that it showed has ended.
 */
import type { IRunSummary } from '../api/wire';
import type { ITdbgService } from '../tokens';

/**
 * Open the run that is live, the youngest of several, whenever none is open.
 *
 * @param isLookedAt - whether a picture of the open run is in front
 *
 * #### Notes
 * So, too, when the open run has ended before the user's eyes and the next one has begun, as in a
 * notebook whose training cell is run again. One that had ended when it was opened stays - unless
 * it came back with the page: nobody has chosen it there, and what begins now is what is waited for.
 */
export function openLiveRun(
  service: ITdbgService,
  isLookedAt: () => boolean = () => false
): void {
  const known = new Set(service.runs.all.map(run => run.id));
  let restored = service.runs.isLoaded ? service.current?.id : undefined;
  let watched: string | null = null;
  const look = (): void => {
    const { current, runs } = service;
    const live = runs.all.filter(run => run.status === 'running');
    if (current && live.some(run => run.id === current.id)) {
      watched = current.id;
      return;
    }
    let next: IRunSummary | undefined = live[0];
    if (current && current.id !== watched) {
      const mayLeave = current.id === restored && !isLookedAt();
      next = mayLeave ? live.find(run => !known.has(run.id)) : undefined;
    }
    if (next) {
      watched = next.id;
      service.setCurrent(next.id);
    }
  };
  service.runs.changed.connect(look, service);
  service.currentChanged.connect(() => {
    restored = undefined;
  }, service);
  look();
}
