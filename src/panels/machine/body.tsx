/**
 * The meters of the machine, and what it reads and sends.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import type { IGpu, IHost } from '../../api/wire';
import { formatBytes, formatNumber } from '../../model/format';
import type { IMeter } from '../../model/machine';
import { KEPT_S, gpuMeters, hostMeters } from '../../model/machine';
import type { ITdbgService } from '../../tokens';
import { useSignals } from '../signals';
import { Meter } from './meter';
import { gpuName, meterNote } from './words';

/** What the section needs. */
export interface IMachineProps {
  readonly service: Pick<ITdbgService, 'connection' | 'machine'>;
  readonly trans: TranslationBundle;
}

/** The widget that holds the section; the machine is read only while it is in sight. */
export class MachineBody extends ReactWidget {
  constructor(props: IMachineProps) {
    super();
    this.addClass('jp-TdbgMachine');
    this._props = props;
  }

  override dispose(): void {
    this._hold?.dispose();
    this._hold = null;
    super.dispose();
  }

  handleEvent(event: Event): void {
    if (event.type === 'visibilitychange') {
      this._look(this.isVisible);
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    document.addEventListener('visibilitychange', this);
    this._look(this.isVisible);
  }

  protected override onBeforeDetach(msg: Message): void {
    document.removeEventListener('visibilitychange', this);
    this._look(false);
    super.onBeforeDetach(msg);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._look(true);
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._look(false);
  }

  protected override render(): JSX.Element {
    return <Machine {...this._props} />;
  }

  private _look(isSeen: boolean): void {
    const on = isSeen && !document.hidden;
    if (on) {
      this._hold ??= this._props.service.machine.retain();
    } else {
      this._hold?.dispose();
      this._hold = null;
    }
  }

  private _hold: IDisposable | null = null;
  private _props: IMachineProps;
}

/** The meters, or why there are none. */
function Machine(props: IMachineProps): JSX.Element {
  const { service, trans } = props;
  const { connection, machine } = service;
  useSignals(machine.changed, connection.changed);
  const { host } = machine;
  if (!host) {
    return (
      <p className="jp-TdbgMachine-note" role="status">
        {connection.isStale || connection.state === 'missing'
          ? trans.__('The meters need a live connection to the server.')
          : trans.__('Reading the machine…')}
      </p>
    );
  }
  return (
    <div
      className={`jp-TdbgMachine-meters${
        connection.state === 'live' ? '' : ' jp-mod-stale'
      }`}
    >
      <Meters {...props} host={host} meters={hostMeters(host)} />
      {host.gpus.map(gpu => (
        <Gpu key={gpu.device} {...props} host={host} gpu={gpu} />
      ))}
      {host.gpu_problem && (
        <p className="jp-TdbgMachine-note">{host.gpu_problem}</p>
      )}
      <Rates host={host} trans={trans} />
    </div>
  );
}

/** Some meters, with their past. */
function Meters(
  props: IMachineProps & {
    readonly host: IHost;
    readonly gpu?: IGpu;
    readonly meters: ReadonlyArray<IMeter>;
  }
): JSX.Element {
  const { host, gpu, trans, meters } = props;
  const { machine } = props.service;
  const frame = {
    left: machine.time - KEPT_S,
    right: machine.time,
    low: 0,
    high: 1
  };
  const device = gpu ? gpuName(gpu, host.gpus.length, trans) : '';
  return (
    <>
      {meters.map(meter => (
        <Meter
          key={meter.id}
          meter={meter}
          device={device}
          note={meterNote(meter, host, trans)}
          history={machine.history(meter.id)}
          frame={frame}
          trans={trans}
        />
      ))}
    </>
  );
}

/** Both meters of a GPU, and what it says besides. */
function Gpu(
  props: IMachineProps & { readonly host: IHost; readonly gpu: IGpu }
): JSX.Element {
  const { gpu, trans } = props;
  const facts = [
    gpu.name,
    !gpu.answers && trans.__('does not answer'),
    gpu.temperature_c !== null && `${formatNumber(gpu.temperature_c)} °C`,
    gpu.power_w !== null && `${Math.round(gpu.power_w)} W`
  ].filter(Boolean);
  return (
    <>
      <Meters {...props} meters={gpuMeters(gpu)} />
      {facts.length > 0 && (
        <div className="jp-TdbgMachine-facts">{facts.join(' · ')}</div>
      )}
    </>
  );
}

/** What has no upper end: bytes per second. */
function Rates(props: {
  readonly host: IHost;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { host, trans } = props;
  const rate = (bytes: number | null): string =>
    bytes === null ? '–' : `${formatBytes(bytes)}/s`;
  return (
    <dl className="jp-TdbgMachine-rates">
      {(host.disk_read !== null || host.disk_write !== null) && (
        <>
          <dt>{trans.__('Disk')}</dt>
          <dd>
            {trans.__(
              '%1 read · %2 written',
              rate(host.disk_read),
              rate(host.disk_write)
            )}
          </dd>
        </>
      )}
      {(host.net_recv !== null || host.net_sent !== null) && (
        <>
          <dt>{trans.__('Network')}</dt>
          <dd>
            {trans.__(
              '%1 in · %2 out',
              rate(host.net_recv),
              rate(host.net_sent)
            )}
          </dd>
        </>
      )}
    </dl>
  );
}
