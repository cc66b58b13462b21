/**
 * The layer tree with its search.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  ReactWidget,
  caretDownIcon,
  caretRightIcon,
  searchIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import type { IFinding, IRules } from '../../api/wire';
import { CommandIDs } from '../../commands';
import { formatShape } from '../../model/format';
import { byWeight } from '../../model/rules';
import type { RunModel } from '../../model/run';
import type { ITreeNode, ITreeRow } from '../../model/tree';
import { buildTree, parentRow, visibleRows } from '../../model/tree';
import type { ITdbgService } from '../../tokens';
import { EmptyState } from '../empty';
import { isolated, missingRun, runName } from '../name';
import { useSignals } from '../signals';
import { WindowedRows } from '../window/rows';
import { FindingBadge, severityWord } from '../words';

/** Height of a row, px. */
const ROW_HEIGHT = 22;

/** Most findings that a badge tells in words. */
const MOST_TOLD = 3;

/** Most modules that are opened from the start. */
const OPEN_AT_FIRST = 12;

/** What the tree needs. */
export interface ILayersProps {
  readonly service: ITdbgService;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The widget that holds the tree. */
export class LayersBody extends ReactWidget {
  constructor(props: ILayersProps) {
    super();
    this.addClass('jp-TdbgLayers');
    this._props = props;
  }

  protected override render(): JSX.Element {
    return <CurrentLayers {...this._props} />;
  }

  private _props: ILayersProps;
}

/** The tree of the current run. */
function CurrentLayers(props: ILayersProps): JSX.Element {
  useSignals(props.service.currentChanged);
  const run = props.service.current;
  return run ? (
    <Layers key={run.id} run={run} {...props} />
  ) : (
    <EmptyState title={props.trans.__('No run is open')}>
      {props.trans.__('Choose a run above to see its layers.')}
    </EmptyState>
  );
}

/** Search and tree of one run. */
function Layers(props: ILayersProps & { readonly run: RunModel }): JSX.Element {
  const { run, commands, trans } = props;
  const [filter, setFilter] = React.useState('');
  const [expanded, setExpanded] = React.useState<ReadonlySet<string> | null>(
    null
  );
  const [chosen, setChosen] = React.useState<string | null>(null);
  useSignals(run.tensorsChanged, run.rulesChanged, run.changed);
  const { tensors } = run;
  const nodes = React.useMemo(
    () =>
      buildTree(tensors, {
        metrics: trans.__('Losses and metrics'),
        optimizer: trans.__('Optimizer'),
        recorded: trans.__('Recorded'),
        cost: trans.__('Cost of the debugger')
      }),
    [tensors, trans]
  );
  const open = React.useMemo(
    () => expanded ?? openAtFirst(nodes),
    [expanded, nodes]
  );
  const rows = React.useMemo(
    () => visibleRows(nodes, open, filter),
    [nodes, open, filter]
  );

  const toggle = (node: ITreeNode, on: boolean): void => {
    const next = new Set(open);
    if (on) {
      next.add(node.id);
    } else {
      next.delete(node.id);
    }
    setExpanded(next);
  };
  const activate = (row: ITreeRow, event: React.UIEvent): void => {
    if (row.node.tensor) {
      setChosen(row.node.id);
      const { ctrlKey, metaKey } = event as React.MouseEvent;
      void commands.execute(CommandIDs.showTensor, {
        run: run.id,
        tensor: row.node.tensor.name,
        newPanel: ctrlKey || metaKey
      });
    } else {
      toggle(row.node, !row.expanded);
    }
  };
  // While the search is on, all groups are open.
  const canClose = filter.trim() === '';
  const onKey = (
    row: ITreeRow,
    event: React.KeyboardEvent
  ): boolean | ITreeRow => {
    const isModule = row.node.tensor === null;
    switch (event.key) {
      case 'ArrowRight':
        if (isModule && !row.expanded) {
          toggle(row.node, true);
        }
        // The row below an open group is its first child.
        return row.expanded ? rows[rows.indexOf(row) + 1] : true;
      case 'ArrowLeft':
        if (row.expanded && canClose) {
          toggle(row.node, false);
          return true;
        }
        return parentRow(rows, row) ?? true;
      default:
        return false;
    }
  };

  return (
    <>
      <div className="jp-TdbgFilter">
        <searchIcon.react tag="span" className="jp-TdbgFilter-icon" />
        <input
          type="search"
          className="jp-TdbgFilter-input"
          placeholder={trans.__('Search layers and tensors')}
          aria-label={trans.__('Search layers and tensors')}
          value={filter}
          onChange={event => setFilter(event.target.value)}
        />
      </div>
      {rows.length === 0 ? (
        <NoLayers run={run} filter={filter} trans={trans} />
      ) : (
        <WindowedRows
          items={rows}
          rowHeight={ROW_HEIGHT}
          keyOf={row => row.node.id}
          role="tree"
          label={trans.__('Layers of %1', isolated(runName(run, trans)))}
          onActivate={activate}
          onKey={onKey}
          textOf={row => row.node.label}
          rowProps={row =>
            ({
              className: `jp-TdbgLayers-item${
                row.node.id === chosen ? ' jp-mod-current' : ''
              }${row.node.tensor ? ' jp-mod-tensor' : ''}`,
              title: row.node.tensor?.name ?? row.node.id,
              'aria-level': row.depth + 1,
              'aria-posinset': row.position,
              'aria-setsize': row.siblings,
              'aria-expanded': row.node.tensor ? undefined : row.expanded,
              'aria-selected': row.node.id === chosen,
              'data-tdbg-run': run.id,
              'data-tdbg-tensor': row.node.tensor?.name
            }) as React.HTMLAttributes<HTMLDivElement>
          }
          render={row => <LayerRow row={row} rules={run.rules} trans={trans} />}
        />
      )}
    </>
  );
}

/** One module or tensor. */
function LayerRow(props: {
  readonly row: ITreeRow;
  readonly rules: IRules;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { trans } = props;
  const { node, depth, expanded } = props.row;
  const findings = node.severity ? findingsOn(node, props.rules) : [];
  const caret = expanded ? caretDownIcon : caretRightIcon;
  const { tensor } = node;
  return (
    <>
      <span style={{ width: 4 + depth * 12, flex: 'none' }} />
      {tensor ? (
        <span
          className={`jp-TdbgLayers-kind jp-mod-${tensor.kind}`}
          aria-hidden="true"
        />
      ) : (
        <caret.react tag="span" className="jp-TdbgLayers-caret" />
      )}
      <span className="jp-TdbgLayers-label">{node.label}</span>
      {node.severity && (
        <FindingBadge
          severity={node.severity}
          count={node.findings}
          title={[
            trans._n(
              '%1 finding, the worst: %2',
              '%1 findings, the worst: %2',
              node.findings,
              severityWord(node.severity, trans)
            ),
            ...findings.map(finding => finding.message)
          ].join('\n')}
        />
      )}
      {tensor && tensor.shape.length > 0 && (
        <span className="jp-TdbgLayers-shape">{formatShape(tensor.shape)}</span>
      )}
    </>
  );
}

/** The worst findings on a tensor, or on those of a module. */
function findingsOn(
  node: ITreeNode,
  { findings, muted }: IRules
): ReadonlyArray<IFinding> {
  const names = new Set(tensorNames(node));
  return byWeight(
    findings.filter(
      ({ rule, tensor }) => names.has(tensor) && !muted.includes(rule)
    )
  ).slice(0, MOST_TOLD);
}

function tensorNames(node: ITreeNode): ReadonlyArray<string> {
  return node.tensor ? [node.tensor.name] : node.children.flatMap(tensorNames);
}

/** Why there is nothing to list. */
function NoLayers(props: {
  readonly run: RunModel;
  readonly filter: string;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { run, filter, trans } = props;
  if (filter) {
    return <EmptyState title={trans.__('Nothing matches the search')} />;
  }
  switch (run.state) {
    case 'loading':
      return <EmptyState title={trans.__('Reading the run…')} />;
    case 'missing':
      return <EmptyState title={missingRun(run, trans)} />;
    case 'error':
      return (
        <EmptyState title={trans.__('The run could not be read')}>
          {run.error}
        </EmptyState>
      );
    case 'ready':
      return run.summary?.status !== 'running' ? (
        <EmptyState title={trans.__('Nothing was recorded')}>
          {trans.__('The run ended before its first saved step.')}
        </EmptyState>
      ) : (
        <EmptyState title={trans.__('Nothing recorded yet')}>
          {trans.__('Layers appear with the first saved step.')}
        </EmptyState>
      );
  }
}

/** All that fits at a glance: groups, and the modules of a small model. */
function openAtFirst(nodes: ReadonlyArray<ITreeNode>): ReadonlySet<string> {
  const modules = nodes.filter(node => !node.id.startsWith(':'));
  const open = new Set([':metrics']);
  if (modules.length <= OPEN_AT_FIRST) {
    modules.forEach(node => open.add(node.id));
  }
  return open;
}
