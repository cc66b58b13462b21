/**
 * What the side bar shows before anybody has chosen a run, and after the one that it showed has ended.
 */
import type { ITdbgService } from '../tokens';

/**
 * Open the run that is live, the youngest of several, whenever none is open.
 *
 * #### Notes
 * So, too, when the open run has ended before the user's eyes and the next one has begun, as in a
 * notebook whose training cell is run again. One that had ended when it was opened stays.
 */
export function openLiveRun(service: ITdbgService): void {
  let watched: string | null = null;
  const look = (): void => {
    const { current, runs } = service;
    const isRunning =
      current !== null && runs.get(current.id)?.status === 'running';
    if (isRunning) {
      watched = current.id;
    } else if (current === null || current.id === watched) {
      const live = runs.all.find(run => run.status === 'running');
      if (live) {
        watched = live.id;
        service.setCurrent(live.id);
      }
    }
  };
  service.runs.changed.connect(look, service);
  look();
}
