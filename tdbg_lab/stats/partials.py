"""Statistics as they come from a device: dense rows of partial moments and full histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.block import columns
from tdbg_lab.stats.merging import merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["COLUMNS", "block_from_partials"]

_NONE: NDArray[np.float32] = np.zeros(0, np.float32)

COLUMNS = ("finite", "nan", "pos_inf", "neg_inf", "zero", "min", "max", "mean", "std", "l1")
"""Columns of a table of partials, float64. Counts are exact: a partial has less than 2**53 elements."""


def block_from_partials(
    partials: NDArray[np.float64],
    rows: NDArray[np.int64],
    hist: NDArray[np.integer],
    channels: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]] | None] = (),
) -> StatsBlock:
    """Join what a device measured into a block.

    Parameters
    ----------
    partials : (P, 10) float64
        One run of elements each, by `COLUMNS`.
    rows : (P,) int
        Tensor that each partial belongs to.
    hist : (N, 2048) int
        Histograms of the tensors.
    channels : sequence of (zero_frac, mean) or None
        Per tensor; empty when no tensor has any.
    """
    n_rows = len(hist)
    whole = merge(_one_block(partials), rows, n_rows)
    owner, bins = np.nonzero(hist)
    offsets = np.searchsorted(owner, np.arange(n_rows + 1)).astype(np.int64)
    pairs = [pair or (_NONE, _NONE) for pair in channels] or [(_NONE, _NONE)] * n_rows
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
        hist_bins=bins.astype(np.uint16),
        hist_counts=hist[owner, bins].astype(np.int64),
        channel_offsets=np.cumsum([0, *(len(pair[1]) for pair in pairs)], dtype=np.int64),
        channel_zero_frac=np.concatenate([_NONE, *(pair[0] for pair in pairs)]),
        channel_mean=np.concatenate([_NONE, *(pair[1] for pair in pairs)]),
    )


def _one_block(partials: NDArray[np.float64]) -> StatsBlock:
    """Partials as rows of a block without histograms."""
    n_rows = len(partials)
    counts = partials[:, :5].astype(np.int64)
    finite, low, high, std = counts[:, 0], partials[:, 5], partials[:, 6], partials[:, 8]
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
