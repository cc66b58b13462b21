/**
 * The layer tree of a run: its tensors grouped by module, and the rows a list shows of it.
 */
import type { ITensorInfo, Severity } from '../api/wire';

/** A module, or a tensor (a leaf). */
export interface ITreeNode {
  /** Unique in the tree. */
  readonly id: string;
  /** Last part of the path. */
  readonly label: string;
  /** The tensor, for leaves. */
  readonly tensor: ITensorInfo | null;
  readonly children: ReadonlyArray<ITreeNode>;
  /** Findings on it and below. */
  readonly findings: number;
  /** The worst of them. */
  readonly severity: Severity | null;
}

/** One visible row. */
export interface ITreeRow {
  readonly node: ITreeNode;
  /** 0 for the top. */
  readonly depth: number;
  readonly expanded: boolean;
  /** 1-based position among its siblings, and their number. */
  readonly position: number;
  readonly siblings: number;
}

/** Name of the group of tensors that belong to no module, by kind. */
export type GroupKey = 'metrics' | 'optimizer' | 'recorded' | 'cost';

const GROUP_OF_KIND: { readonly [kind: string]: GroupKey } = {
  loss: 'metrics',
  scalar: 'metrics',
  optimizer: 'optimizer',
  cost: 'cost'
};

/** Order within a module: what one looks for first. */
const KIND_ORDER = [
  'loss',
  'scalar',
  'activation',
  'gradient',
  'weight',
  'bias',
  'buffer',
  'input'
];

/** Kinds whose names are paths, without a word before. */
const PLAIN: ReadonlySet<string> = new Set(['weight', 'bias', 'buffer']);

/** What a leaf is called inside its module: `weight`, `weight gradient`, `output`. */
export function leafLabel(tensor: ITensorInfo): string {
  const { kind, module, name } = tensor;
  const slash = name.indexOf('/');
  const prefix = slash < 0 ? '' : name.slice(0, slash);
  const path = slash < 0 ? name : name.slice(slash + 1);
  if (!module) {
    return Private.loose(kind, name, path);
  }
  const rest = Private.below(module, PLAIN.has(kind) ? name : path);
  switch (kind) {
    case 'gradient':
      return rest ? `${rest} gradient` : 'gradient';
    case 'activation':
      return rest ? `output ${rest}` : 'output';
    case 'input':
      return rest ? `input ${rest}` : 'input';
    case 'optimizer':
      return Private.fact(module, path);
    default:
      return rest || prefix || path;
  }
}

/**
 * Build the tree: modules by their dotted path, tensors below theirs, the rest in groups.
 *
 * @param groups - labels of the groups of tensors without a module
 */
export function buildTree(
  tensors: ReadonlyArray<ITensorInfo>,
  groups: { readonly [key in GroupKey]: string }
): ReadonlyArray<ITreeNode> {
  const root = new Private.Branch('', '');
  const loose = new Map<GroupKey, ITensorInfo[]>();
  for (const tensor of tensors) {
    if (tensor.module) {
      root.descend(tensor.module.split('.')).tensors.push(tensor);
    } else {
      const key = GROUP_OF_KIND[tensor.kind] ?? 'recorded';
      loose.set(key, [...(loose.get(key) ?? []), tensor]);
    }
  }
  const order: ReadonlyArray<GroupKey> = [
    'metrics',
    'recorded',
    'optimizer',
    'cost'
  ];
  const outside = order
    .filter(key => loose.has(key))
    .map(key => {
      const branch = new Private.Branch(`:${key}`, groups[key]);
      branch.tensors.push(...(loose.get(key) ?? []));
      return branch.freeze();
    });
  const first = outside.filter(node => node.id === ':metrics');
  const last = outside.filter(node => node.id !== ':metrics');
  return [...first, ...root.freeze().children, ...last];
}

/** The rows to show: all below expanded nodes; with a filter, the matches and their parents. */
export function visibleRows(
  nodes: ReadonlyArray<ITreeNode>,
  expanded: ReadonlySet<string>,
  filter = ''
): ReadonlyArray<ITreeRow> {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows: ITreeRow[] = [];
  const visit = (level: ReadonlyArray<ITreeNode>, depth: number): void => {
    const shown =
      words.length > 0
        ? level.filter(node => Private.matches(node, words))
        : level;
    shown.forEach((node, i) => {
      const open =
        node.tensor === null && (words.length > 0 || expanded.has(node.id));
      rows.push({
        node,
        depth,
        expanded: open,
        position: i + 1,
        siblings: shown.length
      });
      if (open) {
        visit(node.children, depth + 1);
      }
    });
  };
  visit(nodes, 0);
  return rows;
}

/** The row that `row` stands below; undefined at the top. */
export function parentRow(
  rows: ReadonlyArray<ITreeRow>,
  row: ITreeRow
): ITreeRow | undefined {
  return rows
    .slice(0, rows.indexOf(row))
    .reverse()
    .find(({ depth }) => depth < row.depth);
}

/** Ids of the modules above the tensor called `name`, outermost first. */
export function ancestors(
  nodes: ReadonlyArray<ITreeNode>,
  name: string
): ReadonlyArray<string> {
  for (const node of nodes) {
    if (node.tensor?.name === name) {
      return [];
    }
    if (node.children.some(child => child.tensor?.name === name)) {
      return [node.id];
    }
    const below = ancestors(node.children, name);
    if (below.length > 0) {
      return [node.id, ...below];
    }
  }
  return [];
}

namespace Private {
  /** What of a path is below a module; Keras joins its parts by slashes. */
  export function below(module: string, path: string): string {
    for (const start of [module, module.replace(/\./g, '/')]) {
      if (path === start) {
        return '';
      }
      if (path.startsWith(start) && './:'.includes(path[start.length])) {
        return path.slice(start.length + 1);
      }
    }
    return path;
  }

  /** What is called by its own name, as no module is known that it belongs to. */
  export function loose(kind: string, name: string, path: string): string {
    switch (kind) {
      case 'gradient':
      case 'input':
        return `${path} ${kind}`;
      case 'activation':
        return `${path} output`;
      default:
        return kind in GROUP_OF_KIND && kind !== 'scalar' ? path : name;
    }
  }

  /** What an optimizer knows of a parameter: `update_ratio of weight`. */
  export function fact(module: string, path: string): string {
    const slash = path.indexOf('/');
    const owner = path.slice(slash + 1);
    const rest = below(module, owner);
    return rest && rest !== owner ? `${path.slice(0, slash)} of ${rest}` : path;
  }

  /** A module while the tree is being built. */
  export class Branch {
    constructor(id: string, label: string) {
      this._id = id;
      this._label = label;
    }

    readonly tensors: ITensorInfo[] = [];

    /** The branch at `path`, made where it is missing. */
    descend(path: ReadonlyArray<string>): Branch {
      const [head, ...rest] = path;
      let child = this._branches.get(head);
      if (!child) {
        child = new Branch(this._id ? `${this._id}.${head}` : head, head);
        this._branches.set(head, child);
      }
      return rest.length > 0 ? child.descend(rest) : child;
    }

    freeze(): ITreeNode {
      const rank = (tensor: ITensorInfo): number => {
        const index = KIND_ORDER.indexOf(tensor.kind);
        return index < 0 ? KIND_ORDER.length : index;
      };
      const leaves = [...this.tensors]
        .sort((a, b) => rank(a) - rank(b))
        .map(tensor => ({
          id: `${this._id}/${tensor.name}`,
          label: leafLabel(tensor),
          tensor,
          children: [],
          findings: tensor.findings,
          severity: tensor.severity
        }));
      const branches = [...this._branches.values()].map(b => b.freeze());
      const children: ITreeNode[] = [...leaves, ...branches];
      return {
        id: this._id,
        label: this._label,
        tensor: null,
        children,
        findings: children.reduce((sum, child) => sum + child.findings, 0),
        severity: worst(children.map(child => child.severity))
      };
    }

    private _branches = new Map<string, Branch>();
    private _id: string;
    private _label: string;
  }

  /** The worst of `severities`; null when there is none. */
  function worst(severities: ReadonlyArray<Severity | null>): Severity | null {
    const order: ReadonlyArray<Severity> = ['critical', 'warning', 'notice'];
    return order.find(severity => severities.includes(severity)) ?? null;
  }

  /** Whether the node or anything below matches every word. */
  export function matches(
    node: ITreeNode,
    words: ReadonlyArray<string>
  ): boolean {
    if (node.tensor) {
      const text =
        `${node.tensor.name} ${node.tensor.module} ${node.label} ${node.tensor.kind}`.toLowerCase();
      return words.every(word => text.includes(word));
    }
    return node.children.some(child => matches(child, words));
  }
}
