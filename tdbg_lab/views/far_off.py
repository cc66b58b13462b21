"""What a picture of several runs shows: not what is so far off that all else would be one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.views.run_curves import RunCurve

__all__ = ["Frame", "far_off", "frame_of"]

_FAR = 30.0
"""Times the usual size of the values, where most losses begin, from which one is far off."""
_FAR_OF_TWO = 1e4
"""The same where there are two curves, of which none is the usual one."""
_SIZE = 0.95
"""Quantile of the distances from zero that is the size of a curve, if its first value is not larger."""
_PAD = 0.05
"""Share of the frame above and below its values."""


class Frame(NamedTuple):
    """The values that are shown: those of the runs that stay, or all that are not far off where none does."""

    low: float
    high: float
    """The least and the greatest of them."""
    left: int
    """Runs with values beyond."""

    def hold(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """`values` with those that are finite brought into the frame."""
        return np.where(np.isfinite(values), np.clip(values, self.low, self.high), values)

    def axis(self, *, log_y: bool) -> list[float]:
        """The ends of the axis, as Plotly has them."""
        low, high = (np.log10(self.low), np.log10(self.high)) if log_y else (self.low, self.high)
        pad = _PAD * ((high - low) or abs(high) or 1.0)
        return [float(low - pad), float(high + pad)]


def far_off(curves: Sequence[RunCurve]) -> float:
    """The distance from zero above which values are far off those of most curves; infinite if unknown."""
    sizes = sorted(size for curve in curves if (size := _size(curve.y)) > 0)
    if len(sizes) < 2:
        return np.inf
    return (_FAR if len(sizes) > 2 else _FAR_OF_TWO) * sizes[(len(sizes) - 1) // 2]


def frame_of(curves: Sequence[RunCurve], *, log_y: bool) -> Frame | None:
    """What to show of curves some of whose values are far off; None where none are."""
    limit = far_off(curves)
    left = {curve.run for curve in curves if (np.abs(curve.y[np.isfinite(curve.y)]) > limit).any()}
    staying = [curve.y for curve in curves if curve.run not in left]
    values = np.concatenate(staying or [curve.y for curve in curves])
    shown = values[(np.abs(values) <= limit) & ((values > 0) if log_y else True)]
    if not left or not len(shown):
        return None
    return Frame(float(shown.min()), float(shown.max()), len(left))


def _size(values: NDArray[np.float64]) -> float:
    """How far from zero the values of a curve usually are, or were at first; 0 without any."""
    finite = np.abs(values[np.isfinite(values)])
    return float(max(finite[0], np.quantile(finite, _SIZE))) if len(finite) else 0.0
