"""The machines of a run: each is shown once, however many ranks sampled it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["gpu_words", "hosts_of", "machine_names", "named"]


def hosts_of(run: Run) -> dict[int, str]:
    """Machine of each rank, by name. Where it is not known, a rank is taken for a machine of its own."""
    hosts = {one.rank: one.host for one in run.machines() if one.host}
    return {rank: hosts.get(rank, f"rank {rank}") for rank in run.ranks()}


def machine_names(run: Run) -> dict[int, str]:
    """Name of each machine by the rank that stands for it; empty where there is only one.

    Ranks of one host see the same: the first of them stands for it.
    """
    first: dict[str, int] = {}
    for rank, host in hosts_of(run).items():
        first.setdefault(host, rank)
    return {rank: name if len(first) > 1 else "" for name, rank in first.items()}


def named(device: str, machine: str) -> str:
    """A device in words; `machine` is empty where there is only one."""
    return f"{device} of {machine}" if machine else device


def gpu_words(run: Run) -> str:
    """Why GPUs are not seen, as a sentence; empty where all are, or nothing is known."""
    return next((one.problem for one in run.machines() if one.problem), "")
