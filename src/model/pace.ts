/**
 * How often pictures are drawn, so that all of them together leave the page time for its user.
 */

/** Share of the time of the page that drawing may take. */
const SHARE = 0.5;

/** Drawings of a picture the quickest of which tells what it costs: those interrupted by other programs do not count. */
const REMEMBERED = 5;

/** Longest pause it asks for, ms. */
const MAX_GAP_MS = 2000;

/** Time after which the next picture need not wait for the answer to the one before it, ms. */
const MAX_TURN_MS = 200;

/**
 * What drawing costs, picture by picture, and the pause that follows from it; and whose turn it is.
 *
 * #### Notes
 * All pictures of a page are drawn by one thread. Were each asked for as often as the settings
 * allow, a grid of large ones would only queue up, and every picture would be older than need be.
 * For the same reason they are asked for one after the other: while one is drawn here, the server
 * makes the next, and no picture waits for all of them.
 */
export class DrawPace {
  /** Drawing `picture` has taken `ms`. */
  note(picture: object, ms: number): void {
    const costs = this._costs.get(picture) ?? [];
    this._costs.set(picture, [...costs, ms].slice(-REMEMBERED));
  }

  /** `picture` is no longer drawn. */
  forget(picture: object): void {
    this._costs.delete(picture);
  }

  /** Shortest time between two drawings of one picture, ms, when each is drawn as often. */
  get gap(): number {
    let sum = 0;
    for (const costs of this._costs.values()) {
      sum += Math.min(...costs);
    }
    return Math.min(sum / SHARE, MAX_GAP_MS);
  }

  /** Call `ask` when its turn comes: at once, or when those before it have their answers. */
  turn(ask: () => Promise<void>): void {
    this._waiting.push(ask);
    if (!this._isAsking) {
      this._next();
    }
  }

  private _next(): void {
    const ask = this._waiting.shift();
    this._isAsking = ask !== undefined;
    if (!ask) {
      return;
    }
    let isOver = false;
    const end = (): void => {
      if (!isOver) {
        isOver = true;
        clearTimeout(timer);
        this._next();
      }
    };
    const timer = setTimeout(end, MAX_TURN_MS);
    void ask().then(end, end);
  }

  private _costs = new Map<object, ReadonlyArray<number>>();
  private _isAsking = false;
  private _waiting: (() => Promise<void>)[] = [];
}
