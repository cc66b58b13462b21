"""Moments at which a GPU waits while something else is at its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.rules.profile.machine import align, gpu_load, machines
from tdbg_lab.rules.sample_log import Samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

    Condition = Callable[[NDArray[np.float64]], NDArray[np.bool_]]

__all__ = ["Bottleneck", "find_bottleneck"]


class Bottleneck(NamedTuple):
    """What was found on one machine; shares and loads in percent."""

    rank: int
    share: float
    """Moments at which a GPU waits and the other thing is busy."""
    waiting: float
    """Moments at which a GPU waits, whatever the cause."""
    gpu_median: float
    other_median: float
    moments: int


def find_bottleneck(
    run: RunView,
    metric: str,
    *,
    window: int | None,
    least: int,
    waits: Condition,
    busy: Condition,
    threshold: float,
    scale: Callable[[int], float] = lambda rank: 1.0,  # noqa: ARG005 - the same for all machines
) -> Bottleneck | None:
    """The worst machine with more than `threshold` percent of such moments, or None.

    Parameters
    ----------
    metric
        Of the device ``cpu``; what may be busy.
    window
        Last moments that are looked at, since the first step; None for all there are.
    least
        Least number of moments.
    scale
        Factor of the metric on a machine.
    """
    found = []
    for rank in machines(run):
        gpus = gpu_load(run, rank)
        lowest = Samples(gpus.time_ns, gpus.values.min(axis=1)) if gpus.values.size else None
        if lowest is None:
            continue
        time_ns, values = align((lowest, run.samples(metric, "cpu", rank)))
        if window is not None:
            values = values[time_ns >= _begin_ns(run)][-window:]
        if len(values) < least:
            continue
        other = np.minimum(values[:, 1] * scale(rank), 100.0)
        low = waits(values[:, 0])
        both = low & busy(other)
        found.append(
            Bottleneck(
                rank,
                100.0 * float(both.mean()),
                100.0 * float(low.mean()),
                float(np.median(values[:, 0])),
                float(np.median(other)),
                len(values),
            )
        )
    worst = max(found, key=lambda one: one.share, default=None)
    return worst if worst is not None and worst.share > threshold else None


def _begin_ns(run: RunView) -> int:
    """When training began; of a run without phases, before all samples."""
    first = run.activity.spans.first_ns if run.activity is not None else None
    return 0 if first is None else first
