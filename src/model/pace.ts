/**
 * How often pictures are drawn, so that all of them together leave the page time for its user.
 */

/** Share of the time of the page that drawing may take. */
const SHARE = 0.5;

/** Weight of the newest drawing in the average. */
const NEWEST = 0.3;

/** Longest pause it asks for, ms. */
const MAX_GAP_MS = 2000;

/**
 * What drawing costs, picture by picture, and the pause that follows from it.
 *
 * #### Notes
 * All pictures of a page are drawn by one thread. Were each asked for as often as the settings
 * allow, a grid of large ones would only queue up, and every picture would be older than need be.
 */
export class DrawPace {
  /** Drawing `picture` has taken `ms`. */
  note(picture: object, ms: number): void {
    const old = this._costs.get(picture) ?? ms;
    this._costs.set(picture, old + NEWEST * (ms - old));
  }

  /** `picture` is no longer drawn. */
  forget(picture: object): void {
    this._costs.delete(picture);
  }

  /** Shortest time between two drawings of one picture, ms, when each is drawn as often. */
  get gap(): number {
    let sum = 0;
    for (const cost of this._costs.values()) {
      sum += cost;
    }
    return Math.min(sum / SHARE, MAX_GAP_MS);
  }

  private _costs = new Map<object, number>();
}
