"""One scalar of several runs, read: a curve for each run and mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tdbg_lab.records import Kind
from tdbg_lab.views.scalars import smooth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import Mode
    from tdbg_lab.run import Run

__all__ = ["SCALAR_KINDS", "RunCurve", "RunEnd", "curves_of", "ends_of", "usual_scalar"]

SCALAR_KINDS = (Kind.LOSS, Kind.SCALAR, Kind.OPTIMIZER)


@dataclass(frozen=True, slots=True)
class RunCurve:
    """One scalar of one run in one mode."""

    run: int
    """Its place among the runs."""
    mode: Mode
    x: NDArray[Any]
    """Steps, or seconds since the run began, shape ``(S,)``."""
    y: NDArray[np.float64]
    """Shape ``(S,)``."""


class RunEnd(NamedTuple):
    """What a scalar of a run came to."""

    value: float
    """The last one that is finite, or the average of the last ones."""
    last: float
    """The last one: NaN or infinite where the training diverged."""


def usual_scalar(runs: Sequence[Run]) -> str | None:
    """The loss that most of the runs have, else the metric."""
    for kind in (Kind.LOSS, Kind.SCALAR):
        often = Counter(
            name for each in runs for name in dict.fromkeys(key.name for key in each.tensors(kind=kind))
        )
        if often:
            return max(often, key=lambda name: often[name])  # the first of those that are as frequent
    return None


def curves_of(
    runs: Sequence[Run], name: str, modes: Sequence[Mode], *, over_time: bool = False
) -> list[RunCurve]:
    """A curve for each run and mode that has the scalar `name`, by run."""
    return [
        curve for at, run in enumerate(runs) for curve in _curves(run, at, name, modes, over_time=over_time)
    ]


def ends_of(curves: Sequence[RunCurve], smoothing: float = 0.0) -> dict[int, RunEnd]:
    """What each run came to, by its place; runs without any number are left out.

    Training counts, where there is some.

    Parameters
    ----------
    smoothing
        The last value is that of the smoothed curve, see `smooth`.
    """
    found = {}
    for curve in reversed(curves):  # training comes first
        finite = curve.y[np.isfinite(curve.y)]
        if len(finite):
            value = smooth(curve.x, curve.y, smoothing)[-1] if smoothing else finite[-1]
            found[curve.run] = RunEnd(float(value), float(curve.y[-1]))
    return dict(sorted(found.items()))


def _curves(run: Run, at: int, name: str, modes: Sequence[Mode], *, over_time: bool) -> list[RunCurve]:
    if name not in set(run.tensor_names()):
        return []
    found = []
    for mode in modes:
        series = run.scalars(name, mode=mode)
        steps, values = np.asarray(series.steps), np.asarray(series.values, dtype=np.float64)
        if len(steps):
            x = (np.asarray(series.time_ns) - run.info.created_ns) / 1e9 if over_time else steps
            found.append(RunCurve(at, mode, x, values))
    return found
