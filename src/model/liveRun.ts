/**
 * What the side bar shows before anybody has chosen a run.
 */
import type { ITdbgService } from '../tokens';

/** Open the run that is live, the youngest of several, whenever none is open. */
export function openLiveRun(service: ITdbgService): void {
  const look = (): void => {
    if (service.current === null) {
      const live = service.runs.all.find(run => run.status === 'running');
      if (live) {
        service.setCurrent(live.id);
      }
    }
  };
  service.runs.changed.connect(look, service);
  look();
}
