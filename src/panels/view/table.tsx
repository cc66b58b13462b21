/**
 * The numbers of a picture as a table, over the picture.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { FigureModel } from '../../model/figure';
import { formatNumber } from '../../model/format';
import type { Cell, ITable } from '../../model/table';
import { figureTables } from '../../model/table';
import { EmptyState } from '../empty';
import { useSignals } from '../signals';

/** What the table needs. */
export interface IViewTableProps {
  readonly model: FigureModel;
  readonly trans: TranslationBundle;
}

/** The widget that holds the tables. The picture below it goes on; so do the tables. */
export class ViewTable extends ReactWidget {
  constructor(props: IViewTableProps) {
    super();
    this.addClass('jp-TdbgTable');
    this.node.tabIndex = 0; // To be scrolled by the keyboard.
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', props.trans.__('Table of the view'));
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <Tables {...this._props} />;
  }

  private _props: IViewTableProps;
}

function Tables(props: IViewTableProps): JSX.Element {
  const { model, trans } = props;
  useSignals(model.changed);
  const { figure } = model;
  const tables = React.useMemo(
    () => (figure ? figureTables(figure) : []),
    [figure]
  );
  if (tables.length === 0) {
    return (
      <EmptyState title={trans.__('No numbers')}>
        {model.meta.caption}
      </EmptyState>
    );
  }
  return (
    <>
      {tables.map((table, i) => (
        <TableOf key={i} table={table} trans={trans} />
      ))}
    </>
  );
}

function TableOf(props: {
  readonly table: ITable;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { table, trans } = props;
  const [head, ...columns] = table.columns;
  const [rows, series] = table.outOf;
  const whole = table.rows.length === rows && columns.length === series;
  return (
    <table className="jp-TdbgTable-table">
      <caption>
        {table.title}
        {!whole &&
          ` ${trans.__('(%1 of %2 rows, %3 of %4 columns)', table.rows.length, rows, columns.length, series)}`}
      </caption>
      <thead>
        <tr>
          <th scope="col">{head}</th>
          {columns.map((column, i) => (
            <th key={i} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map(([name, ...cells], i) => (
          <tr key={i}>
            <th scope="row">{cellText(name)}</th>
            {cells.map((value, j) => (
              <td key={j}>{cellText(value)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function cellText(value: Cell): string {
  if (value === null) {
    return '–';
  }
  return typeof value === 'number'
    ? Number.isInteger(value)
      ? String(value)
      : formatNumber(value)
    : value;
}
