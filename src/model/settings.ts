/**
 * The settings of the extension, typed once.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { Severity } from '../api/wire';

/** Least severity that is announced. */
export type NotificationLevel = Severity | 'none';

const LEVELS: ReadonlyArray<NotificationLevel> = [
  'notice',
  'warning',
  'critical',
  'none'
];

/** Typed getters over the user's settings; defaults until they are loaded, or where there are none. */
export class TdbgSettings implements IDisposable {
  /** Emits after any setting changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether the cursor of a newly opened run follows it. */
  get follow(): boolean {
    return this._get('follow', true);
  }

  /** Most pictures one panel draws in a second. */
  get figuresPerSecond(): number {
    return Math.min(Math.max(this._get('figuresPerSecond', 8), 0.1), 20);
  }

  /** Least severity of a finding that is announced. */
  get notifications(): NotificationLevel {
    const level = this._get('notifications', 'warning');
    return LEVELS.find(known => known === level) ?? 'warning';
  }

  /** Most points a picture draws along its axis; null leaves it to the view. */
  get points(): number | null {
    return this._get('points', 0) || null;
  }

  /** Time between two looks at the runs while there is no socket, s. */
  get pollSeconds(): number {
    return Math.max(this._get('pollSeconds', 5), 1);
  }

  /** Whether zooming along the steps in one picture zooms the others of the run. */
  get linkRanges(): boolean {
    return this._get('linkRanges', true);
  }

  /** Whether `severity` is to be announced. */
  announces(severity: Severity): boolean {
    return LEVELS.indexOf(severity) >= LEVELS.indexOf(this.notifications);
  }

  /** Read from `settings` from now on. */
  attach(settings: ISettingRegistry.ISettings): void {
    this._settings = settings;
    settings.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._settings?.changed.disconnect(this._onChanged, this);
    this._settings = null;
    Signal.clearData(this);
  }

  private _get<T extends string | number | boolean>(
    key: string,
    fallback: T
  ): T {
    const value = this._settings?.composite[key];
    return typeof value === typeof fallback ? (value as T) : fallback;
  }

  private _onChanged(): void {
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _settings: ISettingRegistry.ISettings | null = null;
}
