/**
 * The live side of the wire: one websocket for the whole application, reconnecting by itself.
 */
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ClientMessage, StreamMessage } from './wire';
import { isStreamMessage } from './wire';

/** Where the socket stands. */
export type StreamState = 'idle' | 'connecting' | 'open' | 'closed';

/** What the models need from a stream; tests give them a fake. */
export interface IRunStream extends IDisposable {
  /** Where the socket stands. */
  readonly state: StreamState;
  /** Emits after `state` changed. */
  readonly stateChanged: ISignal<IRunStream, StreamState>;
  /** Emits each message of the server. */
  readonly message: ISignal<IRunStream, StreamMessage>;
  /** Connect, and stay connected; once. */
  start(): void;
  /** The server is there: do not wait any longer to connect again. */
  reconnect(): void;
  /** Ask for immediate news of these runs, and of no others. */
  watch(runs: ReadonlyArray<string>): void;
  /** Ask to be told how busy the machine is, or no more. */
  watchHost(on: boolean): void;
}

/**
 * A socket inside a poll: when it closes, the poll opens the next one, backing off.
 *
 * #### Notes
 * A hidden page does not reconnect until it is shown again. A socket that answers nothing to a
 * ping counts as closed.
 */
export class RunStream implements IRunStream {
  constructor(options: RunStream.IOptions) {
    this._settings = options.serverSettings;
    this._pingMs = options.pingMs ?? 20_000;
    this._poll = new Poll({
      auto: false,
      factory: () => this._connect(),
      frequency: {
        interval: options.retryMs ?? 1000,
        backoff: true,
        max: 30_000
      },
      name: 'tdbg-lab:stream',
      standby: options.standby ?? 'when-hidden'
    });
  }

  get state(): StreamState {
    return this._state;
  }

  get stateChanged(): ISignal<this, StreamState> {
    return this._stateChanged;
  }

  get message(): ISignal<this, StreamMessage> {
    return this._message;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  start(): void {
    if (this._state === 'idle') {
      this._setState('connecting');
      void this._poll.start();
    }
  }

  reconnect(): void {
    if (this._state === 'closed') {
      void this._poll.refresh();
    }
  }

  watch(runs: ReadonlyArray<string>): void {
    this._watched = [...runs];
    this._send({ type: 'watch', runs: this._watched });
  }

  watchHost(on: boolean): void {
    if (on !== this._isHostWatched) {
      this._isHostWatched = on;
      this._send({ type: 'host', on });
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._poll.dispose();
    this._drop();
    Signal.clearData(this);
  }

  /** Open a socket; settles when it closes: fulfilled if it had been open, else rejected. */
  private _connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.isDisposed) {
        return;
      }
      const { appendToken, token, WebSocket, wsUrl } = this._settings;
      let url = URLExt.join(wsUrl, 'tdbg', 'stream');
      if (appendToken && token !== '') {
        url += `?token=${encodeURIComponent(token)}`;
      }
      if (this._state !== 'connecting' && this._state !== 'closed') {
        this._setState('connecting');
      }
      let opened = false;
      const socket = new WebSocket(url);
      this._socket = socket;
      const end = (): void => {
        this._drop();
        this._setState('closed');
        if (opened) {
          resolve();
        } else {
          reject(new Error('The stream could not be opened.'));
        }
      };
      socket.onopen = () => {
        opened = true;
        this._setState('open');
        this._send({ type: 'watch', runs: this._watched });
        if (this._isHostWatched) {
          this._send({ type: 'host', on: true });
        }
        this._startPings(end);
      };
      socket.onmessage = event => this._onMessage(event);
      socket.onclose = end;
    });
  }

  private _onMessage(event: MessageEvent): void {
    this._heard = true;
    let data: unknown;
    try {
      data = JSON.parse(String(event.data));
    } catch (error) {
      console.error('Unreadable message of the tdbg stream', error);
      return;
    }
    if (isStreamMessage(data)) {
      this._message.emit(data);
    }
  }

  /** Ask for a word from time to time; where none comes, it is the end: who is gone answers no closing either. */
  private _startPings(end: () => void): void {
    this._heard = true;
    this._pings = setInterval(() => {
      if (!this._heard) {
        end();
        return;
      }
      this._heard = false;
      this._send({ type: 'ping' });
    }, this._pingMs);
  }

  private _send(message: ClientMessage): void {
    if (this._socket && this._state === 'open') {
      this._socket.send(JSON.stringify(message));
    }
  }

  /** Let go of the socket and all it could still call. */
  private _drop(): void {
    clearInterval(this._pings);
    const socket = this._socket;
    this._socket = null;
    if (socket) {
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = null;
      socket.onerror = null;
      socket.close();
    }
  }

  private _setState(state: StreamState): void {
    if (this._state !== state) {
      this._state = state;
      this._stateChanged.emit(state);
    }
  }

  private _heard = false;
  private _isHostWatched = false;
  private _message = new Signal<this, StreamMessage>(this);
  private _pingMs: number;
  private _pings: ReturnType<typeof setInterval> | undefined;
  private _poll: Poll;
  private _settings: ServerConnection.ISettings;
  private _socket: WebSocket | null = null;
  private _state: StreamState = 'idle';
  private _stateChanged = new Signal<this, StreamState>(this);
  private _watched: ReadonlyArray<string> = [];
}

/** Statics of the stream. */
export namespace RunStream {
  /** How to reach the server, and how patiently. */
  export interface IOptions {
    /** From the application's service manager. */
    readonly serverSettings: ServerConnection.ISettings;
    /** Time between pings, ms. */
    readonly pingMs?: number;
    /** Shortest time between two attempts, ms. */
    readonly retryMs?: number;
    /** When not to reconnect. */
    readonly standby?: Poll.Standby;
  }
}
