"""Build, join, select and read `StatsBlock`s. Merging stands in `tdbg_lab.stats.merging`."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.bins import CENTER, N_BINS, bin_of
from tdbg_lab.stats.merging import merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["columns", "concat", "dense", "empty_block", "merge", "quantile", "scalar_block", "take"]

_COUNTS = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
_FLOATS = ("min", "max", "mean", "std", "l1", "l2")
_fixed_columns = attrgetter(*_COUNTS, *_FLOATS)
_SMALL, _LARGE = 1e-37, 1e38
"""Magnitudes well within float32."""
_RAGGED = (
    ("hist_offsets", ("hist_bins", "hist_counts")),
    ("channel_offsets", ("channel_zero_frac", "channel_mean")),
)


def columns(ints: NDArray[np.int64], floats: NDArray[np.float64]) -> dict[str, Any]:
    """Fixed columns of a block from ``(5, N)`` counts and ``(6, N)`` floats, in the order of its fields."""
    return dict(zip((*_COUNTS, *_FLOATS), (*ints, *floats), strict=True))


def empty_block(n: int = 0, reason: str | None = None) -> StatsBlock:
    """`n` rows without statistics: counts 0, floats NaN, each with the same `reason`."""
    fixed: dict[str, Any] = {name: np.zeros(n, np.int64) for name in _COUNTS}
    fixed |= {name: np.full(n, np.nan) for name in _FLOATS}
    return StatsBlock(
        **fixed,
        hist_offsets=np.zeros(n + 1, np.int64),
        hist_bins=np.zeros(0, np.uint16),
        hist_counts=np.zeros(0, np.int64),
        channel_offsets=np.zeros(n + 1, np.int64),
        channel_zero_frac=np.zeros(0, np.float32),
        channel_mean=np.zeros(0, np.float32),
        reasons=() if reason is None else (reason,) * n,
    )


def concat(blocks: Sequence[StatsBlock]) -> StatsBlock:
    """The rows of all `blocks`, in order."""
    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        return empty_block()
    parts_of = zip(*map(_fixed_columns, blocks), strict=True)
    fixed: dict[str, Any] = dict(zip((*_COUNTS, *_FLOATS), map(np.concatenate, parts_of), strict=True))
    for offsets, values in _RAGGED:
        parts = [getattr(block, offsets) for block in blocks]
        owned = [(part.item(0), part.item(-1)) for part in parts]
        fixed[offsets] = _joined_offsets(parts, owned)
        for name in values:
            # a slice of a table may hold more than it owns
            lists = [getattr(block, name) for block in blocks]
            fixed[name] = np.concatenate(
                [
                    one if low == 0 and high == len(one) else one[low:high]
                    for one, (low, high) in zip(lists, owned, strict=True)
                ]
            )
    reasons: tuple[str | None, ...] = ()
    if any(block.reasons for block in blocks):
        reasons = tuple(reason for block in blocks for reason in (block.reasons or (None,) * len(block)))
    return StatsBlock(**fixed, reasons=reasons)


def take(block: StatsBlock, rows: Any) -> StatsBlock:
    """The given rows (indices, a boolean mask or a slice), in that order."""
    index = np.asarray(rows) if _are_places(rows) else np.arange(len(block))[rows].reshape(-1)
    fixed: dict[str, Any] = {name: getattr(block, name)[index] for name in (*_COUNTS, *_FLOATS)}
    for offsets, values in _RAGGED:
        start = getattr(block, offsets)
        first = start[:-1][index]
        lengths = start[1:][index] - first
        fixed[offsets] = _offsets(lengths)
        shift = first - fixed[offsets][:-1]
        source = np.arange(fixed[offsets][-1]) + np.repeat(shift, lengths)
        for name in values:
            fixed[name] = getattr(block, name)[source]
    reasons = tuple(block.reasons[row] for row in index) if block.reasons else ()
    return StatsBlock(**fixed, reasons=reasons)


def _are_places(rows: Any) -> bool:
    """Whether rows are named one by one, which is the same for a block of any length."""
    return isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind == "i"


def scalar_block(values: Sequence[float]) -> StatsBlock:
    """N numbers, each the one element of its row; `StatsBlock.scalar_values` gives them back."""
    x = np.asarray(values, dtype=np.float64).reshape(-1)
    n = len(x)
    magnitude = np.abs(x)
    zero = x == 0
    if n and ((magnitude < _LARGE) & ((magnitude > _SMALL) | zero)).all():
        return _ordinary_scalars(x, magnitude, zero)
    finite = np.isfinite(x)
    value = np.where(finite, x, np.nan) + 0.0  # -0.0 becomes 0.0
    binned = finite & (x != 0)
    return StatsBlock(
        count=np.ones(n, np.int64),
        nan_count=np.isnan(x).astype(np.int64),
        pos_inf_count=(x == np.inf).astype(np.int64),
        neg_inf_count=(x == -np.inf).astype(np.int64),
        zero_count=zero.astype(np.int64),
        min=value,
        max=value.copy(),
        mean=value.copy(),
        std=value * 0.0 + 0.0,
        l1=np.abs(value),
        l2=np.abs(value),
        hist_offsets=_offsets(binned),
        hist_bins=bin_of(x[binned]),
        hist_counts=np.ones(int(binned.sum()), np.int64),
        channel_offsets=np.zeros(n + 1, np.int64),
        channel_zero_frac=np.zeros(0, np.float32),
        channel_mean=np.zeros(0, np.float32),
    )


def _ordinary_scalars(
    x: NDArray[np.float64], magnitude: NDArray[np.float64], zero: NDArray[np.bool_]
) -> StatsBlock:
    """`scalar_block` of numbers that are zero or of a size that float32 knows: the usual case, and quick."""
    n = len(x)
    none, one = np.zeros(n + 1, np.int64), np.ones(n, np.int64)
    value, binned = x + 0.0, x[~zero]  # -0.0 becomes 0.0
    return StatsBlock(
        count=one,
        nan_count=none[:n],
        pos_inf_count=none[:n],
        neg_inf_count=none[:n],
        zero_count=zero.astype(np.int64),
        min=value,
        max=value,
        mean=value,
        std=np.zeros(n),
        l1=magnitude,
        l2=magnitude,
        hist_offsets=_offsets(~zero),
        hist_bins=(binned.astype(np.float32).view(np.uint32) >> 21).astype(np.uint16),
        hist_counts=one[: len(binned)],
        channel_offsets=none,
        channel_zero_frac=np.zeros(0, np.float32),
        channel_mean=np.zeros(0, np.float32),
    )


def dense(block: StatsBlock, row: int) -> NDArray[np.int64]:
    """Histogram of one row with all its empty bins, shape ``(2048,)``."""
    counts = np.zeros(N_BINS, np.int64)
    owned = slice(block.hist_offsets[row], block.hist_offsets[row + 1])
    counts[block.hist_bins[owned]] = block.hist_counts[owned]
    return counts


def quantile(block: StatsBlock, q: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles of the finite elements from the histogram, shape ``(N, Q)``.

    The `q`-quantile is the element of rank ``ceil(q * n)`` (numpy's ``inverted_cdf``), known up to
    `tdbg_lab.stats.bins.RELATIVE_ERROR`; the first and the last are exact. NaN where nothing is
    finite, or no histogram was kept.
    """
    wanted = np.clip(np.asarray(q, dtype=np.float64).reshape(-1), 0.0, 1.0)
    out = np.full((len(block), len(wanted)), np.nan)
    lengths = np.diff(block.hist_offsets)
    # Rows of foreign origin may have moments and no histogram.
    rows = np.flatnonzero((block.finite_count > 0) & ((lengths > 0) | (block.zero_count > 0)))
    if not len(rows) or not len(wanted):
        return out
    owner = np.concatenate([np.repeat(np.arange(len(block)), lengths), np.arange(len(block))])
    value = np.concatenate([CENTER[block.hist_bins], np.zeros(len(block))])
    weight = np.concatenate([block.hist_counts, block.zero_count])
    order = np.lexsort((value, owner))
    value, total = value[order], np.cumsum(weight[order])
    bounds = block.hist_offsets + np.arange(len(block) + 1)  # one entry a row more: its zeros
    before = np.concatenate([[0], total])[bounds[:-1]]
    n = block.finite_count[rows]
    rank = np.clip(np.ceil(wanted[None, :] * n[:, None]).astype(np.int64), 1, n[:, None])
    found = np.searchsorted(total, rank + before[rows][:, None], side="left")
    low, high = block.min[rows][:, None], block.max[rows][:, None]
    answer = np.clip(value[np.minimum(found, len(value) - 1)], low, high)
    answer = np.where(rank == 1, low, np.where(rank == n[:, None], high, answer))
    out[rows] = answer
    return out


def _offsets(lengths: NDArray[Any]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _joined_offsets(
    parts: Sequence[NDArray[np.int64]], owned: Sequence[tuple[int, int]]
) -> NDArray[np.int64]:
    """Offsets of tables that are put one behind the other; `owned` is the first and last of each part."""
    joined = np.zeros(sum(map(len, parts)) - len(parts) + 1, np.int64)
    row = end = 0
    for part, (low, high) in zip(parts, owned, strict=True):
        after = row + len(part) - 1
        np.add(part[1:], end - low, out=joined[row + 1 : after + 1])
        row, end = after, end + high - low
    return joined
