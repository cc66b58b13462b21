/**
 * Choosing several runs.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IRunSummary } from '../../api/wire';
import { ItemPicker } from './items';

/** Properties of the picker. */
export interface IRunsPickerProps {
  readonly label: string;
  readonly help?: string;
  readonly runs: ReadonlyArray<IRunSummary>;
  /** How many may be chosen. */
  readonly most: number;
  /** Ids chosen. */
  readonly value: ReadonlyArray<string>;
  readonly trans: TranslationBundle;
  readonly onChange: (ids: ReadonlyArray<string>) => void;
}

/** A button with the choice; below it a search over all other runs. */
export function RunsPicker(props: IRunsPickerProps): JSX.Element {
  const { runs, most, trans } = props;
  const items = runs.map(({ id, name, path, tags }) => ({
    key: id,
    name,
    detail: path === name ? '' : path,
    words: tags.join(' ')
  }));
  return (
    <ItemPicker
      {...props}
      items={items}
      several={true}
      words={{
        none: trans.__('%1: choose', props.label),
        many: n => trans._n('%1 run', '%1 runs', n),
        search: n => trans._n('Search %1 run', 'Search %1 runs', n),
        searchLabel: trans.__('Search runs'),
        noMatch: trans.__('No run matches'),
        full: trans.__('No more than %1: take one away first', most)
      }}
    />
  );
}
