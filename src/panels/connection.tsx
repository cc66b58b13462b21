/**
 * The line that tells whether what is shown is live.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { formatTime } from '../model/format';
import type { ITdbgService } from '../tokens';
import { useSignals } from './signals';

/** What the line needs. */
export interface IConnectionProps {
  readonly service: ITdbgService;
  readonly trans: TranslationBundle;
}

/** The widget that holds the line. */
export class ConnectionLine extends ReactWidget {
  constructor(props: IConnectionProps) {
    super();
    this.addClass('jp-TdbgConnection');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Connection {...this._props} />;
  }

  private _props: IConnectionProps;
}

function Connection(props: IConnectionProps): JSX.Element {
  const { service, trans } = props;
  const { connection } = service;
  useSignals(connection.changed);
  const since = connection.since === null ? '' : formatTime(connection.since);
  const text = {
    connecting: trans.__('Connecting…'),
    live: trans.__('Live'),
    stale: trans.__('Stale since %1; looking from time to time', since),
    offline: since
      ? trans.__('Offline since %1; trying again', since)
      : trans.__('Offline; trying again'),
    denied: trans.__('Not logged in any more: reload the page to log in'),
    missing: trans.__('The server extension is not enabled')
  }[connection.state];
  return (
    <div
      className={`jp-TdbgConnection-line jp-mod-${connection.state}`}
      role="status"
    >
      <span className="jp-TdbgConnection-dot" aria-hidden="true" />
      <span>{text}</span>
    </div>
  );
}
