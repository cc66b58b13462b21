"""The machines of a run: each is shown once, however many ranks sampled it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["gpu_words", "machine_names", "named"]


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
