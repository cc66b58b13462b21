"""The machines of a run: each is shown once, however many ranks sampled it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.run import Run
    from tdbg_lab.store.series import SampleSeries

__all__ = ["at_same_moments", "gpu_words", "machine_names", "named"]


def machine_names(run: Run) -> dict[int, str]:
    """Name of each machine by the rank that stands for it; empty where there is only one.

    Ranks of one host see the same: the first of them stands for it. Where the host is not known, each rank is
    taken for a machine of its own.
    """
    hosts = {one.rank: one.host for one in run.machines() if one.host}
    first: dict[str, int] = {}
    for rank in run.ranks():
        first.setdefault(hosts.get(rank, f"rank {rank}"), rank)
    return {rank: name if len(first) > 1 else "" for name, rank in first.items()}


def named(device: str, machine: str) -> str:
    """A device in words; `machine` is empty where there is only one."""
    return f"{device} of {machine}" if machine else device


def gpu_words(run: Run) -> str:
    """Why GPUs are not seen, as a sentence; empty where all are, or nothing is known."""
    return next((one.problem for one in run.machines() if one.problem), "")


def at_same_moments(
    series: list[SampleSeries],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Moments that all series have, shape ``(S,)``, and their values there, shape ``(N, S)``."""
    if not series:
        return np.empty(0, np.int64), np.empty((0, 0))
    time_ns = series[0].time_ns
    for one in series[1:]:
        if not np.array_equal(time_ns, one.time_ns):
            time_ns = np.intersect1d(time_ns, one.time_ns)
    if not len(time_ns):
        return time_ns, np.empty((len(series), 0))
    return time_ns, np.stack([one.value[np.searchsorted(one.time_ns, time_ns)] for one in series])
