"""The cumulative distribution behind a histogram: exact at the edges of its bins, interpolated between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.analysis.value_axis import ValueAxis
    from tdbg_lab.records import StatsBlock

__all__ = ["quantile_lines", "smooth_rebin"]

_POINT = 1e-6
"""Bins narrower than this, in rows of the picture, are points."""


def quantile_lines(block: StatsBlock, q: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles for drawing: within a bin they move with the rank instead of jumping from bin to bin.

    They stay in the same bin as `tdbg_lab.stats.quantile` (or at its border), within ``[min, max]``, and rise
    with `q`.

    Returns
    -------
    Shape ``(S, Q)``; NaN where nothing is finite.
    """
    from tdbg_lab.stats.bins import LOWER, UPPER

    owner, bins, counts = _all_pieces(block)
    zero = bins < 0
    low = np.where(zero, 0.0, np.maximum(LOWER[bins], block.min[owner]))
    high = np.where(zero, 0.0, np.maximum(np.minimum(UPPER[bins], block.max[owner]), low))
    # the ranks of all rows behind each other: one interpolation for all of them
    total = np.cumsum(counts)
    ranks = np.column_stack((total - counts, total)).ravel()
    size = np.bincount(owner, weights=counts, minlength=len(block))
    wanted = np.asarray(q, dtype=np.float64)
    if not len(owner):
        return np.full((len(block), len(wanted)), np.nan)
    at = (np.cumsum(size) - size)[:, None] + wanted * size[:, None]
    found = np.interp(at, ranks, np.column_stack((low, high)).ravel())
    least, most = block.min[:, None], block.max[:, None]
    found = np.where(wanted <= 0, least, np.where(wanted >= 1, most, found))
    return np.where(size[:, None] > 0, np.clip(found, least, most), np.nan)


def smooth_rebin(block: StatsBlock, axis: ValueAxis, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `tdbg_lab.analysis.value_axis.rebin`, without the stairs of the fixed bins.

    The cumulative counts, known exactly at the borders of bins, are joined by a monotone cubic: each fixed
    bin keeps its count, no density is negative, each line sums to the finite count. `edges` must be equally
    far apart.
    """
    rows = len(edges) - 1
    height = float(edges[1] - edges[0])
    table = np.zeros((len(block), rows))
    for row in range(len(block)):
        low, high, counts = _pieces(block, row)
        # in rows of the picture, so that widths and slopes have a reasonable size whatever the values
        first = np.clip((axis.forward(low) - edges[0]) / height, -1.0, rows + 1.0)
        last = np.clip((axis.forward(high) - edges[0]) / height, -1.0, rows + 1.0)
        point = last - first < _POINT
        at = np.clip(np.floor(first[point]), 0, rows - 1).astype(np.intp)
        np.add.at(table[row], at, counts[point])
        if (~point).any():
            table[row] += np.diff(_between(first[~point], last[~point], counts[~point], rows))
    zero = np.clip(np.floor((axis.forward(np.zeros(1)) - edges[0]) / height), 0, rows - 1).astype(np.intp)
    table[:, zero[0]] += block.zero_count
    return table


def _all_pieces(
    block: StatsBlock,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Row, bin (-1: exactly zero) and count of everything finite, by row and there by value."""
    from tdbg_lab.stats.bins import N_BINS

    owned = slice(int(block.hist_offsets[0]), int(block.hist_offsets[-1]))  # a slice of a table holds more
    with_zeros = np.flatnonzero(block.zero_count)
    owner = np.concatenate((np.repeat(np.arange(len(block)), np.diff(block.hist_offsets)), with_zeros))
    bins = np.concatenate((block.hist_bins[owned].astype(np.intp), np.full(len(with_zeros), -1)))
    counts = np.concatenate((block.hist_counts[owned], block.zero_count[with_zeros])).astype(np.float64)
    half = N_BINS // 2
    place = np.where(bins < half, bins + 1, half - 1 - bins)  # negative ones fall with their number
    order = np.argsort(owner * (2 * N_BINS) + place, kind="stable")
    return owner[order], bins[order], counts[order]


def _pieces(
    block: StatsBlock, row: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Lower edge, upper edge and count of the occupied bins of a row, by value, cut to ``[min, max]``."""
    from tdbg_lab.stats.bins import LOWER, UPPER, ordered

    part = slice(int(block.hist_offsets[row]), int(block.hist_offsets[row + 1]))
    bins = block.hist_bins[part].astype(np.intp)
    order = ordered(bins)
    bins, counts = bins[order], block.hist_counts[part].astype(np.float64)[order]
    low = np.fmax(LOWER[bins], block.min[row])  # a file of somebody else's may hold NaN there
    high = np.fmax(np.fmin(UPPER[bins], block.max[row]), low)
    return low, high, counts


def _between(
    first: NDArray[np.float64], last: NDArray[np.float64], counts: NDArray[np.float64], rows: int
) -> NDArray[np.float64]:
    """Cumulative counts at 0, 1, ... `rows`, all of them from the first to the last."""
    total = np.cumsum(counts)
    knots = np.column_stack((first, last)).ravel()
    values = np.column_stack((total - counts, total)).ravel()
    keep = np.concatenate(([True], np.diff(knots) > _POINT / 2))
    edges = np.clip(np.arange(rows + 1, dtype=np.float64), knots[keep][0], knots[keep][-1])
    below = _monotone_cubic(knots[keep], values[keep], edges)
    below[0], below[-1] = 0.0, total[-1]
    return below


def _monotone_cubic(
    x: NDArray[np.float64], y: NDArray[np.float64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fritsch and Butland's monotone cubic Hermite interpolation (as scipy's ``pchip``)."""
    width = np.diff(x)
    slope = np.diff(y) / width
    if len(x) == 2:
        return np.asarray(y[0] + slope[0] * (at - x[0]))
    tangent = np.zeros(len(x))
    tangent[0], tangent[-1] = slope[0], slope[-1]
    left, right = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    rising = (slope[:-1] > 0) & (slope[1:] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (left + right) / (left / slope[:-1] + right / slope[1:])
    tangent[1:-1][rising] = mean[rising]
    i = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(width) - 1)
    h, t = width[i], (at - x[i]) / width[i]
    start = (1 + 2 * t) * (1 - t) ** 2 * y[i] + t * (1 - t) ** 2 * h * tangent[i]
    return np.asarray(start + t**2 * (3 - 2 * t) * y[i + 1] + t**2 * (t - 1) * h * tangent[i + 1])
