/**
 * How busy the server's machine is, now and in the last two minutes.
 */
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IRunStream } from '../api/stream';
import type { IGpu, IHost } from '../api/wire';

/** How much of the past is kept, s. */
export const KEPT_S = 120;

/** A longer silence is a gap in the line, s. */
const GAP_S = 5;

/** What a meter shows. */
export type MeterKind = 'cpu' | 'memory' | 'gpu' | 'gpu-memory';

/** One meter. */
export interface IMeter {
  readonly kind: MeterKind;
  /** The same from one message to the next. */
  readonly id: string;
  /** 0 to 1; null when it gives no reading. */
  readonly share: number | null;
  /** Used and all bytes, of a memory. */
  readonly bytes: readonly [number, number] | null;
}

/** Time, s, and share; null where there is a gap. */
export type MeterPoint = readonly [number, number | null];

/**
 * The latest reading and what was before.
 *
 * #### Notes
 * The server reads the machine only while somebody retains this.
 */
export class MachineModel implements IDisposable {
  constructor(stream: Pick<IRunStream, 'watchHost'>) {
    this._stream = stream;
  }

  /** Emits after each reading. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The latest reading; null before the first. */
  get host(): IHost | null {
    return this._host;
  }

  /** When `host` was read, s since the epoch. */
  get time(): number {
    return (this._host?.time_ns ?? 0) / 1e9;
  }

  /** The last `KEPT_S` seconds of a meter. */
  history(id: string): ReadonlyArray<MeterPoint> {
    return this._histories.get(id) ?? [];
  }

  /** Keep it up to date until the answer is disposed. */
  retain(): IDisposable {
    this._users += 1;
    this._update();
    return new DisposableDelegate(() => {
      this._users -= 1;
      this._update();
    });
  }

  /** Take in a reading. */
  put(host: IHost): void {
    const before = this.time;
    this._host = host;
    const silence = this.time - before;
    const old = silence > 0 ? this._histories : new Map(); // else the clock was set back
    this._histories = new Map();
    for (const { id, share } of meters(host)) {
      const kept = (old.get(id) ?? []).filter(
        ([time]: MeterPoint) => time >= this.time - KEPT_S
      );
      const isGap = kept.length > 0 && silence > GAP_S;
      const gap: MeterPoint[] = isGap ? [[this.time, null]] : [];
      this._histories.set(id, [...kept, ...gap, [this.time, share]]);
    }
    this._changed.emit();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _update(): void {
    if (!this._isDisposed) {
      this._stream.watchHost(this._users > 0);
    }
  }

  private _changed = new Signal<this, void>(this);
  private _histories = new Map<string, ReadonlyArray<MeterPoint>>();
  private _host: IHost | null = null;
  private _isDisposed = false;
  private _stream: Pick<IRunStream, 'watchHost'>;
  private _users = 0;
}

/** The meters of the machine itself. */
export function hostMeters(host: IHost): ReadonlyArray<IMeter> {
  const { cpu, memory_used: used, memory_total: total } = host;
  return [
    { kind: 'cpu', id: 'cpu', share: Private.share(cpu, 100), bytes: null },
    Private.memory('memory', 'memory', used, total)
  ];
}

/** The meters of one GPU. */
export function gpuMeters(gpu: IGpu): ReadonlyArray<IMeter> {
  const { device, percent, memory_used: used, memory_total: total } = gpu;
  return [
    {
      kind: 'gpu',
      id: device,
      share: Private.share(percent, 100),
      bytes: null
    },
    Private.memory('gpu-memory', `${device}-memory`, used, total)
  ];
}

/** All meters. */
export function meters(host: IHost): ReadonlyArray<IMeter> {
  return [...hostMeters(host), ...host.gpus.flatMap(gpuMeters)];
}

namespace Private {
  export function share(
    part: number | null,
    whole: number | null
  ): number | null {
    return part === null || !whole
      ? null
      : Math.min(Math.max(part / whole, 0), 1);
  }

  export function memory(
    kind: MeterKind,
    id: string,
    used: number | null,
    total: number | null
  ): IMeter {
    const bytes = used !== null && total ? ([used, total] as const) : null;
    return { kind, id, share: share(used, total), bytes };
  }
}
