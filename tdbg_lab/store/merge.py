"""Temporary: merging of statistics rows by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import StatsBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray


def merge(block: StatsBlock, groups: NDArray[np.int64], n_groups: int) -> StatsBlock:
    """Rows of one group become one row; counts exact, moments by Chan."""

    def add(values: NDArray[np.int64]) -> NDArray[np.int64]:
        out = np.zeros(n_groups, np.int64)
        np.add.at(out, groups, values)
        return out

    finite = block.finite_count
    n = add(finite).astype(float)
    weight = np.where(finite > 0, finite, 0).astype(float)

    def fadd(values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros(n_groups)
        np.add.at(out, groups, np.where(finite > 0, values, 0.0))
        return out

    with np.errstate(invalid="ignore", divide="ignore"):
        mean = fadd(block.mean * weight) / n
        m2 = fadd(weight * (block.std**2 + (block.mean - mean[groups]) ** 2))
        std = np.sqrt(m2 / n)
    nan = n == 0
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    np.fmin.at(low, groups, block.min)
    np.fmax.at(high, groups, block.max)

    def void(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(nan, np.nan, values)

    row = np.repeat(groups, np.diff(block.hist_offsets))
    pair = row * 2048 + block.hist_bins
    unique, inverse = np.unique(pair, return_inverse=True)
    counts = np.zeros(len(unique), np.int64)
    np.add.at(counts, inverse, block.hist_counts)
    offsets = np.searchsorted(unique // 2048, np.arange(n_groups + 1))
    first = np.full(n_groups, len(groups), np.int64)
    np.minimum.at(first, groups, np.arange(len(groups)))
    lengths = np.diff(block.channel_offsets)
    keep = [slice(block.channel_offsets[i], block.channel_offsets[i + 1]) for i in first]
    return StatsBlock(
        count=add(block.count),
        nan_count=add(block.nan_count),
        pos_inf_count=add(block.pos_inf_count),
        neg_inf_count=add(block.neg_inf_count),
        zero_count=add(block.zero_count),
        min=void(low),
        max=void(high),
        mean=void(mean),
        std=void(std),
        l1=void(fadd(block.l1)),
        l2=void(np.sqrt(fadd(block.l2**2))),
        hist_offsets=offsets.astype(np.int64),
        hist_bins=(unique % 2048).astype(np.uint16),
        hist_counts=counts,
        channel_offsets=np.r_[0, np.cumsum(lengths[first])].astype(np.int64),
        channel_zero_frac=np.concatenate(
            [block.channel_zero_frac[s] for s in keep] or [np.empty(0, np.float32)]
        ),
        channel_mean=np.concatenate([block.channel_mean[s] for s in keep] or [np.empty(0, np.float32)]),
    )
