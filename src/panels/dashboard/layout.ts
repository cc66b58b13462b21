/**
 * Which pictures a dashboard begins with, and where.
 */
import type { ITensorInfo } from '../../api/wire';
import type { IPanelState } from '../../tokens';

/** Name of the list of rules among the tiles; all others are views of the server. */
export const RULES_TILE = 'tdbg:rules';

/** Rows of tiles, from the top; all rows and all tiles of a row are equally large. */
export type TileRows = ReadonlyArray<ReadonlyArray<IPanelState>>;

/**
 * The tiles to begin with: losses, where gradients die, one layer, its latent space, the machine,
 * the rules.
 *
 * @param has - whether the server knows a view
 * @param width - width of the dashboard, px
 */
export function defaultTiles(
  has: (view: string) => boolean,
  tensors: ReadonlyArray<ITensorInfo>,
  width: number
): TileRows {
  const activation = telling(tensors);
  const wanted: ReadonlyArray<IPanelState> = [
    { view: 'scalars', params: {} },
    {
      view: 'histogram',
      params: activation ? { tensor: activation.name } : {}
    },
    { view: 'latent', params: {} },
    { view: 'overview', params: { kind: 'gradient' } },
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
