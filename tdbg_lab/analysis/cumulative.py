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


def quantile_lines(block: StatsBlock, q: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles for drawing: within a bin they move with the rank instead of jumping from bin to bin.

    They stay in the same bin as `tdbg_lab.stats.quantile` (or at its border), within ``[min, max]``, and rise
    with `q`.

    Returns
    -------
    Shape ``(S, Q)``; NaN where nothing is finite.
    """
    answer = np.full((len(block), len(q)), np.nan)
    wanted = np.asarray(q, dtype=np.float64)
    for row in range(len(block)):
        low, high, counts = _pieces(block, row, with_zeros=True)
        if not len(low):
            continue
        total = np.cumsum(counts)
        x = np.column_stack((low, high)).ravel()
        ranks = np.column_stack((total - counts, total)).ravel()
        found = np.interp(wanted * total[-1], ranks, x)
        answer[row] = np.clip(found, block.min[row], block.max[row])
    return answer


def smooth_rebin(block: StatsBlock, axis: ValueAxis, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `tdbg_lab.analysis.value_axis.rebin`, without the stairs of the fixed bins.

    The cumulative counts, known exactly at the borders of bins, are joined by a monotone cubic: each fixed
    bin keeps its count, no density is negative, each line sums to the finite count.
    """
    rows = len(edges) - 1
    table = np.zeros((len(block), rows))
    for row in range(len(block)):
        low, high, counts = _pieces(block, row, with_zeros=False)
        first, last = axis.forward(low), axis.forward(high)
        point = last - first <= 0
        np.add.at(table[row], _row_of(first[point], edges), counts[point])
        if (~point).any():
            table[row] += np.diff(_between(first[~point], last[~point], counts[~point], edges))
    table[:, _row_of(np.zeros(1), edges)[0]] += block.zero_count
    return table


def _pieces(
    block: StatsBlock, row: int, *, with_zeros: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Lower edge, upper edge and count of the occupied bins of a row, by value, cut to ``[min, max]``."""
    from tdbg_lab.stats.bins import LOWER, UPPER, ordered

    part = slice(int(block.hist_offsets[row]), int(block.hist_offsets[row + 1]))
    bins = block.hist_bins[part].astype(np.intp)
    order = ordered(bins)
    bins, counts = bins[order], block.hist_counts[part].astype(np.float64)[order]
    low = np.maximum(LOWER[bins], block.min[row])
    high = np.maximum(np.minimum(UPPER[bins], block.max[row]), low)
    zeros = int(block.zero_count[row])
    if with_zeros and zeros:
        at = int(np.searchsorted(low, 0.0))
        low, high = np.insert(low, at, 0.0), np.insert(high, at, 0.0)
        counts = np.insert(counts, at, float(zeros))
    return low, high, counts


def _between(
    first: NDArray[np.float64],
    last: NDArray[np.float64],
    counts: NDArray[np.float64],
    edges: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Cumulative counts at `edges`, all of them from the first to the last edge."""
    total = np.cumsum(counts)
    knots = np.column_stack((first, last)).ravel()
    values = np.column_stack((total - counts, total)).ravel()
    keep = np.concatenate(([True], np.diff(knots) > 0))
    below = _monotone_cubic(knots[keep], values[keep], np.clip(edges, knots[0], knots[-1]))
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


def _row_of(positions: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.clip(np.searchsorted(edges, positions, side="right") - 1, 0, len(edges) - 2)
