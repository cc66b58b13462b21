/**
 * The numbers behind a finding.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IFinding, WireNumber } from '../../api/wire';
import { formatNumber } from '../../model/format';
import { humanize } from '../../model/params';
import { showOpened } from '../opened';

/** The numbers, folded away; nothing when there are none. */
export function Evidence(props: {
  readonly finding: IFinding;
  readonly trans: TranslationBundle;
}): JSX.Element | null {
  const evidence = Object.entries(props.finding.evidence ?? {});
  if (evidence.length === 0) {
    return null;
  }
  return (
    <details className="jp-TdbgFinding-evidence" onToggle={showOpened}>
      <summary>{props.trans.__('Evidence')}</summary>
      <dl>
        {evidence.map(([name, value]) => (
          <React.Fragment key={name}>
            <dt>{humanize(name)}</dt>
            <dd>{plain(value)}</dd>
          </React.Fragment>
        ))}
      </dl>
    </details>
  );
}

function plain(value: WireNumber): string {
  return typeof value === 'number' ? formatNumber(value) : String(value ?? '');
}
