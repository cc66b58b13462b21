"""Merge rows of a `StatsBlock`: over micro-steps, ranks, time.

Counts and histograms add up exactly. Moments merge as in Chan, Golub, LeVeque (1979): the spread
within rows plus the spread of their means, which loses nothing to cancellation. Everything is scaled
by the largest magnitude of its group, so float64 data near the ends of the range do not overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.bins import N_BINS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["merge"]


def merge(block: StatsBlock, groups: Any, n_groups: int) -> StatsBlock:
    """Merge the rows of each group into one row.

    Parameters
    ----------
    block : StatsBlock
        N rows.
    groups : (N,) int array
        Group of each row, ``0 <= group < n_groups``.
    n_groups : int
        Rows of the result. A group without rows becomes an empty row (count 0).

    Returns
    -------
    StatsBlock
        Channels are merged where all rows of a group that have any have equally many (weighted by
        count), else left out. A reason stays only where every row of the group has one.
    """
    group = np.asarray(groups, dtype=np.int64).reshape(-1)
    columns: dict[str, Any] = {}
    for name in ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count"):
        columns[name] = _sum_ints(getattr(block, name), group, n_groups)
    columns |= _merge_moments(block, group, n_groups)
    columns |= _merge_histograms(block, group, n_groups)
    columns |= _merge_channels(block, group, n_groups)
    return StatsBlock(**columns, reasons=_merge_reasons(block, group, n_groups))


def _sum_ints(values: NDArray[np.int64], group: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
    total = np.zeros(n_groups, np.int64)
    np.add.at(total, group, values)  # bincount would go through float64
    return total


def _sum_floats(group: NDArray[np.int64], values: NDArray[np.float64], n_groups: int) -> NDArray[np.float64]:
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)  # of nothing, it is int


def _merge_moments(block: StatsBlock, group: NDArray[np.int64], n_groups: int) -> dict[str, Any]:
    used = block.finite_count > 0
    group = group[used]
    n = block.finite_count[used].astype(np.float64)
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    np.minimum.at(low, group, block.min[used])
    np.maximum.at(high, group, block.max[used])
    total = _sum_floats(group, n, n_groups)
    none = total == 0
    scale = np.where(none, 1.0, np.maximum(np.abs(low), np.abs(high)))
    scale[scale == 0] = 1.0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        share = n / total[group]
        mean_of, std_of = block.mean[used] / scale[group], block.std[used] / scale[group]
        mean = _sum_floats(group, share * mean_of, n_groups)
        spread = _sum_floats(group, share * (std_of**2 + (mean_of - mean[group]) ** 2), n_groups)
        top = np.zeros(n_groups)
        np.maximum.at(top, group, block.l2[used])
        top[top == 0] = 1.0
        top[np.isinf(top)] = 1.0  # infinite stays infinite
        l2 = top * np.sqrt(_sum_floats(group, (block.l2[used] / top[group]) ** 2, n_groups))
        l1 = _sum_floats(group, block.l1[used], n_groups)
        std = np.where(low == high, 0.0, np.sqrt(spread) * scale)
        mean = np.clip(mean * scale, low, high)
    floats = {"min": low, "max": high, "mean": mean, "std": std, "l1": l1, "l2": l2}
    for values in floats.values():
        values[none] = np.nan
    return floats


def _merge_histograms(block: StatsBlock, group: NDArray[np.int64], n_groups: int) -> dict[str, Any]:
    lengths = np.diff(block.hist_offsets)
    owned = slice(block.hist_offsets[0], block.hist_offsets[-1])
    key = np.repeat(group * N_BINS, lengths) + block.hist_bins[owned]
    counts = block.hist_counts[owned]
    cells = n_groups * N_BINS
    if cells <= max(4 * len(key), 1 << 16):
        table = np.zeros(cells, np.int64)
        np.add.at(table, key, counts)
        filled = np.flatnonzero(table)
        summed = table[filled]
    else:
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1)) if len(key) else np.zeros(0, np.int64)
        filled = key[first]
        summed = np.add.reduceat(counts[order], first) if len(first) else np.zeros(0, np.int64)
    offsets = np.searchsorted(filled, np.arange(n_groups + 1) * N_BINS).astype(np.int64)
    return {
        "hist_offsets": offsets,
        "hist_bins": (filled % N_BINS).astype(np.uint16),
        "hist_counts": summed.astype(np.int64),
    }


def _merge_channels(block: StatsBlock, group: NDArray[np.int64], n_groups: int) -> dict[str, Any]:
    lengths = np.diff(block.channel_offsets)
    most = np.zeros(n_groups, np.int64)
    np.maximum.at(most, group, lengths)
    least = np.full(n_groups, np.iinfo(np.int64).max)
    has = lengths > 0
    np.minimum.at(least, group[has], lengths[has])
    width = np.where(most == least, most, 0)
    offsets = np.zeros(n_groups + 1, np.int64)
    np.cumsum(width, out=offsets[1:])
    keep = has & (width[group] > 0)
    n = lengths[keep]
    within = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
    source = np.repeat(block.channel_offsets[:-1][keep], n) + within
    target = np.repeat(offsets[:-1][group[keep]], n) + within
    weight = np.repeat(block.count[keep].astype(np.float64), n)
    size = int(offsets[-1])
    zero = block.channel_zero_frac[source].astype(np.float64)
    mean = block.channel_mean[source].astype(np.float64)
    known = ~np.isnan(mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        zero_frac = np.bincount(target, weight * zero, size) / np.bincount(target, weight, size)
        finite = np.bincount(target[known], weight[known], size)
        merged = np.bincount(target[known], weight[known] * mean[known], size) / finite
    return {
        "channel_offsets": offsets,
        "channel_zero_frac": zero_frac.astype(np.float32),
        "channel_mean": merged.astype(np.float32),
    }


def _merge_reasons(block: StatsBlock, group: NDArray[np.int64], n_groups: int) -> tuple[str | None, ...]:
    if not any(block.reasons):
        return ()
    merged: list[str | None] = [None] * n_groups
    measured = [False] * n_groups
    for row, reason in zip(group.tolist(), block.reasons, strict=True):
        if reason is None:
            measured[row] = True
        elif merged[row] is None:
            merged[row] = reason
    return tuple(None if done else reason for done, reason in zip(measured, merged, strict=True))
