/**
 * Whether what is shown is live, and since when it is not.
 */
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/**
 * `connecting`: nothing heard yet; `live`: the socket is open; `stale`: no socket, looking from
 * time to time; `offline`: the server does not answer; `denied`: it does not know the user (any more);
 * `missing`: the server has no Tensor Debugger.
 */
export type ConnectionState =
  'connecting' | 'live' | 'stale' | 'offline' | 'denied' | 'missing';

/** State of the connection. */
export class ConnectionModel {
  /** Emits after `state` or `since` changed. */
  get changed(): ISignal<this, ConnectionState> {
    return this._changed;
  }

  /** Where the connection stands. */
  get state(): ConnectionState {
    return this._state;
  }

  /** Epoch time of the last data heard, ms; null before the first. */
  get since(): number | null {
    return this._since;
  }

  /** Whether what is shown may be out of date. */
  get isStale(): boolean {
    return ['offline', 'stale', 'denied'].includes(this._state);
  }

  /** Something was heard just now. */
  heard(now = Date.now()): void {
    this._since = now;
  }

  /** The connection is now in `state`. */
  set(state: ConnectionState): void {
    if (state !== this._state) {
      this._state = state;
      this._changed.emit(state);
    }
  }

  private _changed = new Signal<this, ConnectionState>(this);
  private _since: number | null = null;
  private _state: ConnectionState = 'connecting';
}
