"""The value axis of histograms: linear, or signed-log (logarithmic on both sides of zero, linear near it)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock

__all__ = ["Scale", "ValueAxis", "rebin"]

Scale = Literal["signed_log", "linear"]
_MAX_DECADES = 14.0
_TICKS = 9
_FAR = 1e300
_LEAST_DECADE = -300
"""Values beyond are drawn here: differences of positions must not overflow."""


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """Maps values to positions in a picture, and a range of it to rows.

    A signed-log position is ``asinh(value / (2 unit)) / ln 10``: nearly ``sign * log10(|value| / unit)``
    beyond `unit`, and through zero without a break.
    """

    scale: Scale
    unit: float
    """Below this size the signed-log axis is about linear; ignored by the linear one."""
    low: float
    """Lowest position shown."""
    high: float
    """Highest position shown."""

    @classmethod
    def fit(cls, block: StatsBlock, scale: Scale) -> ValueAxis:
        """The axis that shows everything finite in `block`.

        The unit is a power of ten and the ends are rounded outwards, so that the axis rests while a
        live picture grows.
        """
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(block.min) & np.isfinite(block.max)
        if not finite.any():
            return cls(scale, 1.0, -1.0, 1.0)
        low = max(float(block.min[finite].min()), -_FAR)
        high = min(float(block.max[finite].max()), _FAR)
        if scale == "linear":
            low, high = _widen(low, high)
            return cls("linear", 1.0, low, high)
        unit = _unit(block, max(abs(low), abs(high)))
        axis = cls("signed_log", unit, 0.0, 0.0)
        ends = axis.forward(np.array([low, high]))
        first, last = math.floor(ends[0] * 4 - 0.01) / 4, math.ceil(ends[1] * 4 + 0.01) / 4
        if low == high == 0:
            return cls("signed_log", unit, -0.5, 0.5)
        # one sign only: a little room on the other side of zero
        first = -0.02 * last if low == 0 else first
        last = -0.02 * first if high == 0 else last
        return cls("signed_log", unit, first, last)

    def forward(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions of values; NaN stays NaN."""
        if self.scale == "linear":
            return np.asarray(values, dtype=np.float64)
        return np.arcsinh(np.asarray(values, dtype=np.float64) / (2 * self.unit)) / math.log(10)

    def inverse(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at positions."""
        if self.scale == "linear":
            return np.asarray(positions, dtype=np.float64)
        return np.sinh(np.asarray(positions, dtype=np.float64) * math.log(10)) * (2 * self.unit)

    def edges(self, rows: int) -> NDArray[np.float64]:
        """Positions of the ``R + 1`` edges of R equal rows, R about `rows`.

        When zero is in sight it lies in the middle of a row, so that exact zeros have their own.
        """
        if not self.low < 0 < self.high and not (self.low == 0 or self.high == 0):
            return np.linspace(self.low, self.high, rows + 1)
        height = (self.high - self.low) / (rows - 1)
        first = math.floor(self.low / height + 0.5 + 1e-9)
        last = math.ceil(self.high / height - 0.5 - 1e-9)
        return np.asarray((np.arange(first, last + 2) - 0.5) * height, dtype=np.float64)

    def ticks(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positions and values of ticks of a signed-log axis: zero and powers of ten, about `_TICKS`."""
        lowest = math.log10(self.unit)
        top = math.floor(lowest + max(abs(self.low), abs(self.high)) + 1e-9)
        sides = (self.low < -0.3) + (self.high > 0.3)
        bottom = math.ceil(lowest + (0 if self.high - self.low < 3 else 0.4) - 1e-9)
        stride = max(1, math.ceil((top - bottom + 1) * max(sides, 1) / (_TICKS - 1)))
        powers = 10.0 ** np.arange(top, bottom - 1, -stride)
        found = self._inside(np.concatenate((-powers, [0.0], powers)))
        if len(found) < 4:  # little more than a decade: 2 and 5 as well
            powers = 10.0 ** np.arange(bottom, top + 1)
            some = np.concatenate((powers, 2 * powers, 5 * powers))
            found = self._inside(np.concatenate((-some, [0.0], some)))
        return self.forward(found), found

    def _inside(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of `values` that are in sight, ascending."""
        values = np.unique(values)
        positions = self.forward(values)
        margin = (self.high - self.low) * 0.02
        return np.asarray(values[(positions >= self.low - margin) & (positions <= self.high + margin)])


def rebin(block: StatsBlock, axis: ValueAxis, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many elements of each row of `block` fall between neighbouring edges.

    A fixed bin that several rows of the picture share is split in proportion to its length on the axis,
    cut to the smallest and largest value seen. What lies beyond the first or the last edge is counted in the
    first or last row: **each line sums to the finite count** (up to rounding).

    Parameters
    ----------
    block
        S rows.
    edges
        Ascending positions on `axis`, shape ``(R + 1,)``.

    Returns
    -------
    Elements, float64 of shape ``(S, R)``.
    """
    from tdbg_lab.stats.bins import LOWER, UPPER

    n, rows = len(block), len(edges) - 1
    owner = np.repeat(np.arange(n), np.diff(block.hist_offsets))
    owned = slice(int(block.hist_offsets[0]), int(block.hist_offsets[-1]))  # a slice of a table holds more
    bins = block.hist_bins[owned].astype(np.int64)
    counts = block.hist_counts[owned].astype(np.float64)
    # bins cut by the smallest or largest value are spread one by one, all others through one product
    low, high = LOWER[bins], UPPER[bins]
    cut_low, cut_high = np.maximum(low, block.min[owner]), np.minimum(high, block.max[owner])
    is_cut = ((cut_low > low) | (cut_high < high)) & (cut_low <= cut_high)
    occupied, column = np.unique(bins[~is_cut], return_inverse=True)
    places = owner[~is_cut] * len(occupied) + column
    dense = np.bincount(places, weights=counts[~is_cut], minlength=n * len(occupied))
    table = dense.reshape(n, len(occupied)) @ _spread(
        axis.forward(LOWER[occupied]), axis.forward(UPPER[occupied]), edges
    )
    if is_cut.any():
        shares = _spread(axis.forward(cut_low[is_cut]), axis.forward(cut_high[is_cut]), edges)
        np.add.at(table, owner[is_cut], counts[is_cut, None] * shares)
    zero_row = min(max(int(np.searchsorted(edges, 0.0, side="right")) - 1, 0), rows - 1)
    table[:, zero_row] += block.zero_count
    return table


def _spread(
    low: NDArray[np.float64], high: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Share of each interval between neighbouring edges, shape ``(B, R)``; rows sum to 1."""
    length = np.maximum(high - low, 1e-300)
    with np.errstate(over="ignore"):  # a point far from an edge: beyond it, by whatever factor
        below = np.clip((edges[None, :] - low[:, None]) / length[:, None], 0.0, 1.0)
    below[:, 0], below[:, -1] = 0.0, 1.0
    return np.diff(below, axis=1)


def _unit(block: StatsBlock, largest: float) -> float:
    """Power of ten below which nearly nothing lies (5% of the non-zero elements of all rows together)."""
    from tdbg_lab.stats.bins import CENTER

    if largest <= 0 or not len(block.hist_bins):
        return 1.0
    totals = np.bincount(block.hist_bins, weights=block.hist_counts, minlength=len(CENTER))
    half = len(CENTER) // 2
    # every step counts the same: a few late steps with vanishing values must stay visible
    sizes = np.abs(CENTER[:half])
    mass = totals[:half] + totals[half:]
    order = np.argsort(sizes, kind="stable")
    share = np.cumsum(mass[order]) / mass.sum()
    small = float(sizes[order][np.searchsorted(share, 0.05)])
    small = min(small, _smallest_median(block))
    small = max(small, largest * 10.0**-_MAX_DECADES)
    return float(10.0 ** max(math.floor(math.log10(min(small, largest))), _LEAST_DECADE))


def _smallest_median(block: StatsBlock) -> float:
    """Smallest, over the rows, of the mean size of the non-zero elements."""
    occupied = block.finite_count - block.zero_count
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.where(occupied > 0, block.l1 / occupied, np.nan)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(sizes.min()) if len(sizes) else math.inf


def _widen(low: float, high: float) -> tuple[float, float]:
    """Ends rounded outwards to a 40th of the span; what is about a single value gets room on both sides."""
    span = high - low
    if span <= max(abs(low) * 1e-12, 1e-300):  # rows of less could not be told apart
        room = abs(low) * 0.1 or 1.0
        return low - room, high + room
    grain = 10.0 ** math.floor(math.log10(span)) / 4
    return math.floor(low / grain) * grain, math.ceil(high / grain) * grain
