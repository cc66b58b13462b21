"""Load of the machines of a run, as the rules here look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.analysis.moments import at_same_moments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tdbg_lab.rules.sample_log import Samples
    from tdbg_lab.rules.view import RunView

__all__ = [
    "Load",
    "align",
    "cores_of_a_rank",
    "devices",
    "gpu_load",
    "machines",
    "other_programs",
    "ranks_of_a_machine",
]

_MOMENTS = 240


@dataclass(frozen=True, slots=True)
class Load:
    """A metric of several devices at the same moments."""

    time_ns: NDArray[np.int64]
    """Shape ``(S,)``."""
    values: NDArray[np.float64]
    """Shape ``(S, D)``."""
    devices: tuple[str, ...]


def devices(run: RunView, metric: str) -> list[tuple[int, str]]:
    """Rank that sampled it and device of each series of a metric; ranks of one machine sample the same."""
    return [] if run.activity is None else run.activity.samples.devices(metric)


def machines(run: RunView, metric: str = "gpu") -> list[int]:
    """Ranks with samples of this metric: each stands for its machine."""
    return sorted({rank for rank, _ in devices(run, metric)})


def gpu_load(run: RunView, rank: int) -> Load:
    """The load of all GPUs of a machine."""
    names = tuple(device for machine, device in devices(run, "gpu") if machine == rank)
    time_ns, values = align(run.samples("gpu", device, rank) for device in names)
    return Load(time_ns, values, names)


def align(series: Iterable[Samples]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Moments that all series have, shape ``(S,)``, and their values there, shape ``(S, N)``."""
    time_ns, values = at_same_moments([(one.time_ns, one.values) for one in series])
    return time_ns, values.T


def ranks_of_a_machine(run: RunView) -> int:
    """Ranks that share a machine: one for each of its GPUs, all where there is none."""
    ranks = max(len(run.ranks), 1)
    gpus = len(gpu_load(run, machines(run)[0]).devices) if machines(run) else ranks
    return max(1, min(ranks, gpus))


def cores_of_a_rank(run: RunView) -> int | None:
    """Cores that each rank has for itself, or None when they are not known."""
    cores = None if run.activity is None else run.activity.samples.cores(next(iter(machines(run, "cpu")), 0))
    return None if cores is None else max(1, cores // ranks_of_a_machine(run))


def other_programs(run: RunView, rank: int) -> tuple[float, float]:
    """How busy the processor is, and how much of it other programs take: mean percent of all cores.

    Over the last `_MOMENTS` that were sampled; ``(0.0, 0.0)`` where that is not known, or where
    several ranks share the machine.
    """
    cores = cores_of_a_rank(run)
    if cores is None or ranks_of_a_machine(run) > 1:
        return 0.0, 0.0
    _, values = align((run.samples("cpu", "cpu", rank), run.samples("process_cpu", "process", rank)))
    if not len(values):
        return 0.0, 0.0
    busy, own = values[-_MOMENTS:].mean(axis=0)
    return float(busy), float(np.clip(busy - own / cores, 0.0, 100.0))
