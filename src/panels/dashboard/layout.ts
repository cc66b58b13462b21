/**
 * Which pictures a dashboard begins with, and where.
 */
import type { ITensorInfo } from '../../api/wire';
import type { IPanelState } from '../../tokens';

/** Name of the list of rules among the tiles; all others are views of the server. */
export const RULES_TILE = 'tdbg:rules';

/** Rows of tiles, from the top; all rows and all tiles of a row are equally large. */
export type TileRows = ReadonlyArray<ReadonlyArray<IPanelState>>;

/** Rows of places, each with the tiles that share it, one of them seen. */
export type SharedPlaces = ReadonlyArray<
  ReadonlyArray<ReadonlyArray<IPanelState>>
>;

/** A lower tile has no room for its picture between its tab, its bar and its foot, px. */
const LEAST_HEIGHT = 160;

const IMPORTANCE = 'feature_importance/';

/**
 * The tiles to begin with: losses, where gradients die, one layer, its latent space, the machine,
 * the rules. Of boosted trees, which have no layers: losses, predictions, how much each feature
 * counts from round to round, the machine, the rules.
 *
 * @param has - whether the server knows a view
 * @param width - width of the dashboard, px
 */
export function defaultTiles(
  has: (view: string) => boolean,
  tensors: ReadonlyArray<ITensorInfo>,
  width: number
): TileRows {
  const names = new Set(tensors.map(({ name }) => name));
  const wanted: ReadonlyArray<IPanelState> = [
    { view: 'scalars', params: {} },
    ...(isBoosted(tensors) ? ofTrees(names) : ofLayers(tensors)),
    { view: 'timeline', params: {} },
    { view: RULES_TILE, params: {} }
  ];
  const tiles = wanted.filter(({ view }) => view === RULES_TILE || has(view));
  const columns = width < 520 ? 1 : width < 900 ? 2 : 3;
  const rows: IPanelState[][] = [];
  for (let i = 0; i < tiles.length; i += columns) {
    rows.push(tiles.slice(i, i + columns));
  }
  return rows;
}

/**
 * Where the tiles go: each to a place of its own, or rows together where they would be too low.
 *
 * @param height - height of the dashboard, px
 */
export function places(rows: TileRows, height: number): SharedPlaces {
  const most = Math.max(1, Math.floor(height / LEAST_HEIGHT));
  const together = Math.ceil(rows.length / most);
  const found: IPanelState[][][] = [];
  for (let i = 0; i < rows.length; i += together) {
    const shared = rows.slice(i, i + together);
    const columns = Math.max(...shared.map(row => row.length));
    found.push(
      Array.from({ length: columns }, (_, column) =>
        shared.flatMap(row => row[column] ?? [])
      )
    );
  }
  return found;
}

/** Whether what trains has features, and no layers. */
function isBoosted(tensors: ReadonlyArray<ITensorInfo>): boolean {
  const layers = new Set(['activation', 'gradient', 'weight']);
  return (
    tensors.some(({ name }) => name.startsWith(IMPORTANCE)) &&
    !tensors.some(({ kind }) => layers.has(kind))
  );
}

function ofTrees(names: ReadonlySet<string>): ReadonlyArray<IPanelState> {
  const importance = names.has(`${IMPORTANCE}gain`) ? 'gain' : 'weight';
  const tensor = names.has('predictions')
    ? 'predictions'
    : `${IMPORTANCE}${importance}`;
  const regex = `^${IMPORTANCE}${importance}/`;
  return [
    { view: 'histogram', params: { tensor } },
    { view: 'overview', params: { kind: 'custom', statistic: 'mean', regex } }
  ];
}

function ofLayers(
  tensors: ReadonlyArray<ITensorInfo>
): ReadonlyArray<IPanelState> {
  const activation = telling(tensors);
  return [
    {
      view: 'histogram',
      params: activation ? { tensor: activation.name } : {}
    },
    { view: 'latent', params: {} },
    { view: 'overview', params: { kind: 'gradient' } }
  ];
}

/**
 * The output to begin with: one in trouble, else that of the first layer that learns, else any.
 */
function telling(tensors: ReadonlyArray<ITensorInfo>): ITensorInfo | undefined {
  const outputs = tensors.filter(({ kind }) => kind === 'activation');
  const learning = new Set(
    tensors.filter(({ kind }) => kind === 'weight').map(({ module }) => module)
  );
  return (
    outputs.find(({ severity }) => severity === 'critical') ??
    outputs.find(({ module }) => learning.has(module)) ??
    outputs[0]
  );
}
