/**
 * Choosing one tensor, or several.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ITensorInfo } from '../../api/wire';
import { formatShape } from '../../model/format';
import { ItemPicker } from './items';

/** Properties of the picker. */
export interface ITensorPickerProps {
  readonly label: string;
  readonly help?: string;
  readonly tensors: ReadonlyArray<ITensorInfo>;
  /** Names chosen. */
  readonly value: ReadonlyArray<string>;
  readonly several: boolean;
  readonly trans: TranslationBundle;
  readonly onChange: (names: ReadonlyArray<string>) => void;
}

/** A button with the choice; below it a search over all tensors that fit. */
export function TensorPicker(props: ITensorPickerProps): JSX.Element {
  const { tensors, trans } = props;
  const items = React.useMemo(
    () =>
      tensors.map(({ name, kind, shape }) => ({
        key: name,
        name,
        detail: formatShape(shape),
        words: kind
      })),
    [tensors]
  );
  return (
    <ItemPicker
      {...props}
      items={items}
      words={{
        none: trans.__('%1: automatic', props.label),
        many: n => trans._n('%1 tensor', '%1 tensors', n),
        search: n => trans._n('Search %1 tensor', 'Search %1 tensors', n),
        searchLabel: trans.__('Search tensors'),
        noMatch: trans.__('No tensor matches')
      }}
    />
  );
}
