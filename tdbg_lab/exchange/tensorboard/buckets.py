"""Histograms between TensorBoard's buckets and our bins.

A bucket is a range of values with a count. Going out, each of our occupied bins becomes one bucket
with exactly its edges and its count, zeros become a bucket of their own, and the gaps between are
empty buckets: nothing is lost but NaN and infinities, which TensorBoard cannot hold.

Coming in, the count of a bucket is spread evenly over the bins it overlaps. A quantile is then off
by at most the width of the bucket it lies in, and `tdbg_lab.stats.bins.RELATIVE_ERROR` of itself;
values nearer to 0 than `ZERO` become zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.bins import CENTER, LOWER, N_BINS, UPPER, bin_of, ordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ZERO", "block_of", "buckets_of"]

ZERO = 1e-12
"""Buckets within this distance of 0 count as zeros: the smallest that TensorBoard's writers make."""

_FINITE = np.r_[0:1020, 1024:2044]
"""Bins that can hold something."""
_ORDER = _FINITE[ordered(_FINITE)]
_EDGES = np.r_[LOWER[_ORDER], UPPER[_ORDER[-1]]]
"""Edges of the bins by value; the smallest ones on both sides of 0 meet there."""


def buckets_of(block: StatsBlock, row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Upper limits, ascending, and counts of the buckets of one row, shapes ``(B,)``."""
    part = slice(block.hist_offsets[row], block.hist_offsets[row + 1])
    bins, counts = block.hist_bins[part].astype(np.intp), block.hist_counts[part].astype(np.float64)
    order = ordered(bins)
    lower, upper, counts = LOWER[bins][order], UPPER[bins][order], counts[order]
    zeros = float(block.zero_count[row])
    if zeros:
        tiny = float(UPPER[0])
        at = int(np.searchsorted(lower, 0.0))
        lower, upper = np.insert(lower, at, -tiny), np.insert(upper, at, 0.0)
        counts = np.insert(counts, at, zeros)
        if at and upper[at - 1] > -tiny:  # the smallest negative bin reaches up to 0
            upper[at - 1] = -tiny
    limits: list[float] = []
    values: list[float] = []
    for low, high, count in zip(lower, upper, counts, strict=True):
        if not limits or low > limits[-1]:
            limits.append(float(low))
            values.append(0.0)
        limits.append(float(high))
        values.append(float(count))
    return np.array(limits), np.array(values)


def block_of(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    counts: NDArray[np.float64],
    known: dict[str, float] | None = None,
) -> StatsBlock:
    """Statistics of one histogram, one row.

    Parameters
    ----------
    left, right, counts
        Edges and count of each bucket, ascending, shapes ``(B,)``.
    known
        Exact ``min``, ``max``, ``sum`` and ``sum_squares``, where the file has them.
    """
    keep = (counts > 0) & np.isfinite(counts)
    largest = float(UPPER[1019])
    left = np.clip(np.nan_to_num(left[keep], posinf=largest, neginf=-largest), -largest, largest)
    right = np.clip(np.nan_to_num(right[keep], posinf=largest, neginf=-largest), -largest, largest)
    counts = np.rint(counts[keep]).clip(0, 2.0**52)
    known = known or {}
    if len(left):
        smallest, greatest = known.get("min", float(left.min())), known.get("max", float(right.max()))
        left, right = left.clip(smallest, greatest), right.clip(smallest, greatest)
    point = left >= right
    none = (left >= -ZERO) & (right <= ZERO)
    dense = np.zeros(N_BINS, np.int64)
    zero = int(counts[none].sum())
    at = point & ~none
    np.add.at(dense, bin_of(left[at]).astype(np.intp), counts[at].astype(np.int64))
    for low, high, count in zip(*(one[~point & ~none] for one in (left, right, counts)), strict=True):
        dense[_ORDER] += _spread(float(low), float(high), float(count))
    return _row(left, right, counts, dense, zero, known)


def _spread(low: float, high: float, count: float) -> NDArray[np.int64]:
    """Whole counts in the bins by value that sum up to `count`."""
    share = np.clip((_EDGES - low) / (high - low), 0.0, 1.0)
    found: NDArray[np.int64] = np.diff(np.rint(share * count)).astype(np.int64)
    return found


def _row(  # noqa: PLR0917 - what block_of knows
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    counts: NDArray[np.float64],
    dense: NDArray[np.int64],
    zero: int,
    known: dict[str, float],
) -> StatsBlock:
    n = int(dense.sum()) + zero
    bins = np.flatnonzero(dense)
    values: dict[str, float] = dict.fromkeys(("min", "max", "mean", "std", "l1", "l2"), np.nan)
    if n:
        middle = (left + right) / 2
        total = known.get("sum", float((middle * counts).sum()))
        squares = known.get("sum_squares", float((((right - left) ** 2 / 12 + middle**2) * counts).sum()))
        mean = total / n
        one_sign = left.min() >= 0 or right.max() <= 0
        values = {
            "min": known.get("min", float(left.min())),
            "max": known.get("max", float(right.max())),
            "mean": mean,
            "std": float(np.sqrt(max(squares / n - mean**2, 0.0))),
            "l1": abs(total) if one_sign else float((np.abs(CENTER[bins]) * dense[bins]).sum()),
            "l2": float(np.sqrt(max(squares, 0.0))),
        }
    fixed: dict[str, Any] = {name: np.array([value]) for name, value in values.items()}
    none = np.zeros(1, np.int64)
    return StatsBlock(
        count=np.array([n]),
        nan_count=none,
        pos_inf_count=none,
        neg_inf_count=none,
        zero_count=np.array([zero]),
        **fixed,
        hist_offsets=np.array([0, len(bins)]),
        hist_bins=bins.astype(np.uint16),
        hist_counts=dense[bins],
        channel_offsets=np.zeros(2, np.int64),
        channel_zero_frac=np.zeros(0, np.float32),
        channel_mean=np.zeros(0, np.float32),
    )
