"""What a reader answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock


@dataclass(frozen=True, slots=True)
class Series:
    """A scalar over steps."""

    steps: NDArray[np.int64]
    """Shape ``(S,)``, ascending."""
    values: NDArray[np.float64]
    """Shape ``(S,)``; NaN and infinities as they were."""
    time_ns: NDArray[np.int64]
    """When each was written, shape ``(S,)``."""

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not len(self):
            return "<Series: no points>"
        first, last = self.steps[0], self.steps[-1]
        return f"<Series: {len(self)} points, steps {first} to {last}, the last {self.values[-1]:.6g}>"


@dataclass(frozen=True, slots=True)
class Overview:
    """One statistic of many tensors over steps."""

    names: tuple[str, ...]
    """``N`` tensors in the order of their first appearance."""
    steps: NDArray[np.int64]
    """Shape ``(S,)``, ascending."""
    values: NDArray[np.float64]
    """Shape ``(N, S)``; NaN where a tensor has no row, or no value."""
    others: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Further statistics that were asked for, each as `values`."""


@dataclass(frozen=True, slots=True)
class HistogramSeries:
    """Histograms of a tensor over steps."""

    steps: NDArray[np.int64]
    """First step of each group, shape ``(S,)``."""
    block: StatsBlock
    """``S`` rows."""

    def __len__(self) -> int:
        return len(self.steps)
