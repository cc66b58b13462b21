"""Whether a noisy series falls, stays, or rises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.rules.middle import median

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Trend", "noise_of", "trend_of"]


@dataclass(frozen=True, slots=True)
class Trend:
    """Where a series began, where it is, and which way it goes. All in the unit of the series."""

    start: float
    """Mean of the first tenth (at least 3 points)."""
    best: float
    """Least mean of as many neighbouring points."""
    now: float
    """Mean of the last tenth."""
    noise: float
    """Standard deviation from point to point, without the trend."""
    fall_z: float
    """Fall from the middle third to the last third, in standard errors; negative when it rises."""
    fall_frac: float
    """The same fall as a share of ``|start|``."""
    points: int

    @property
    def drop_frac(self) -> float:
        """Fall since the start, as a share of ``|start|``."""
        return (self.start - self.now) / _scale(self.start, self.noise)

    @property
    def drop_error_frac(self) -> float:
        """Standard error of the same fall, as a share of ``|start|``."""
        return self._drop_error / _scale(self.start, self.noise)

    @property
    def _drop_error(self) -> float:
        return self.noise * math.sqrt(2.0 / max(3, self.points // 10))

    @property
    def drop_z(self) -> float:
        """The same fall in standard errors."""
        error, fall = self._drop_error, self.start - self.now
        return fall / error if error > 0 else math.copysign(math.inf, fall) if fall else 0.0


def trend_of(values: NDArray[np.float64]) -> Trend | None:
    """Describe a series; points that are not finite do not count. None with fewer than 9 points."""
    x = values[np.isfinite(values)]
    n = len(x)
    if n < 9:
        return None
    k = max(3, n // 10)
    third = n // 3
    noise = noise_of(x)
    middle, last = float(x[-2 * third : -third].mean()), float(x[-third:].mean())
    start = float(x[:k].mean())
    error = noise * np.sqrt(2.0 / third)
    fall = middle - last
    sums = np.zeros(n + 1)
    np.cumsum(x, out=sums[1:])
    return Trend(
        start=start,
        best=float((sums[k:] - sums[:-k]).min() / k),
        now=float(x[-k:].mean()),
        noise=noise,
        fall_z=float(fall / error) if error > 0 else float(np.sign(fall)) * np.inf if fall else 0.0,
        fall_frac=fall / _scale(start, noise),
        points=n,
    )


def noise_of(x: NDArray[np.float64]) -> float:
    """Standard deviation from point to point, blind to a slow trend (von Neumann's), robust to spikes.

    The median of the absolute differences of neighbours, scaled to the standard deviation of a
    normal distribution; their mean square where more than half of the neighbours are equal.
    """
    steps = np.abs(np.diff(x))
    if not len(steps):
        return 0.0
    robust = float(median(steps)) / 0.6745
    return (robust or float(np.sqrt(np.mean(steps**2)))) / float(np.sqrt(2.0))


def _scale(start: float, noise: float) -> float:
    return max(abs(start), noise, float(np.finfo(np.float64).tiny))
