"""Statistics as they come from a device: dense rows of partial moments and full histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.bins import N_BINS
from tdbg_lab.stats.block import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["COLUMNS", "block_from_partials"]

_NONE: NDArray[np.float32] = np.zeros(0, np.float32)

COLUMNS = ("finite", "nan", "pos_inf", "neg_inf", "zero", "min", "max", "mean", "std", "l1")
"""Columns of a table of partials, float64. Counts are exact: a partial has less than 2**53 elements."""


def block_from_partials(
    partials: NDArray[np.float64],
    owners: Sequence[int],
    counts: Sequence[int],
    hist: NDArray[np.integer],
    sums: NDArray[np.float64],
    *,
    widths: Sequence[tuple[int, int]],
) -> StatsBlock:
    """Join what a device measured into a block.

    Parameters
    ----------
    partials : (P, 10) float64
        One run of elements each, by `COLUMNS`; those of a tensor lie behind each other.
    owners, counts : sequence of int
        The tensors in the order of their partials, and how many each has, one at least.
    hist : (N, 2048) int
        Histograms of the tensors.
    sums : (C, 3) float64
        Zeros, sum of the finite elements, and number of them, of each channel of all tensors.
    widths : sequence of (channels, elements)
        Of each tensor.
    """
    n_rows = len(hist)
    order = np.empty(n_rows, np.int64)
    order[np.asarray(owners, np.int64)] = np.arange(n_rows)
    whole = _one_block(_merged(partials, np.asarray(counts, np.int64))[order])
    found = _filled(hist.reshape(-1))
    offsets = np.searchsorted(found, np.arange(n_rows + 1) * N_BINS).astype(np.int64)
    channel_offsets, shares, means = _channels(sums, widths)
    return StatsBlock(
        whole.count,
        whole.nan_count,
        whole.pos_inf_count,
        whole.neg_inf_count,
        whole.zero_count,
        whole.min,
        whole.max,
        whole.mean,
        whole.std,
        whole.l1,
        whole.l2,
        hist_offsets=offsets,
        hist_bins=(found & (N_BINS - 1)).astype(np.uint16),
        hist_counts=hist.reshape(-1)[found].astype(np.int64),
        channel_offsets=channel_offsets,
        channel_zero_frac=shares,
        channel_mean=means,
    )


def _filled(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Places that are not zero. Most are: so they are looked at in pairs first."""
    if counts.dtype.itemsize != 4 or len(counts) % 2:
        return np.flatnonzero(counts)
    pairs = np.flatnonzero(counts.view(np.int64) != 0)
    places = np.stack([2 * pairs, 2 * pairs + 1], axis=1).reshape(-1)
    filled: NDArray[np.int64] = places[counts[places] != 0]
    return filled


def _merged(partials: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Partials of one tensor each, from runs of so many.

    Moments merge as in `tdbg_lab.stats.merging`, in units of the largest magnitude.
    """
    if len(counts) == len(partials):
        return partials
    starts = np.cumsum(counts) - counts
    merged = np.add.reduceat(partials, starts, axis=0)
    merged[:, 5] = np.minimum.reduceat(partials[:, 5], starts)
    merged[:, 6] = np.maximum.reduceat(partials[:, 6], starts)
    finite = partials[:, 0] > 0
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(merged[:, 5]), np.abs(merged[:, 6]))
        scale[~np.isfinite(scale) | (scale == 0)] = 1.0
        share = partials[:, 0] / np.repeat(merged[:, 0], counts)
        unit = np.repeat(scale, counts)
        means = np.where(finite, partials[:, 7] / unit, 0.0)
        stds = np.where(finite, partials[:, 8] / unit, 0.0)
        mean = np.add.reduceat(share * means, starts)
        apart = means - np.repeat(mean, counts)
        variance = np.add.reduceat(np.where(finite, share * (stds * stds + apart * apart), 0.0), starts)
    merged[:, 7], merged[:, 8] = mean * scale, np.sqrt(variance) * scale
    return merged


def _channels(
    sums: NDArray[np.float64], widths: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Offsets, share of zeros and mean of the finite elements of all channels."""
    channels, elements = np.array(widths, np.int64).reshape(-1, 2).T
    offsets = np.concatenate([[0], np.cumsum(channels)])
    if not offsets[-1]:
        return offsets, _NONE, _NONE
    others = np.repeat(elements // np.maximum(channels, 1), channels)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = sums[:, 0] / others
        means = sums[:, 1] / sums[:, 2]
    return offsets, shares.astype(np.float32), means.astype(np.float32)


def _one_block(partials: NDArray[np.float64]) -> StatsBlock:
    """Partials as rows of a block without histograms."""
    n_rows = len(partials)
    counts = partials[:, :5].astype(np.int64)
    finite, low, high = counts[:, 0], partials[:, 5], partials[:, 6]
    std = np.where(low == high, 0.0, partials[:, 8])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.clip(partials[:, 7], low, high)
        l2 = np.hypot(std, mean) * np.sqrt(finite)
    floats = np.stack([low, high, mean, std, partials[:, 9], l2])
    floats[:, finite == 0] = np.nan
    ints = np.stack([counts[:, :4].sum(axis=1), *counts[:, 1:].T])
    return StatsBlock(
        **columns(ints, floats + 0.0),
        hist_offsets=np.zeros(n_rows + 1, np.int64),
        hist_bins=np.zeros(0, np.uint16),
        hist_counts=np.zeros(0, np.int64),
        channel_offsets=np.zeros(n_rows + 1, np.int64),
        channel_zero_frac=_NONE,
        channel_mean=_NONE,
    )
