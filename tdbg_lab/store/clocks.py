"""How far the clocks of a run's machines are apart, as its steps tell.

Processes of one training leave the exchange of their gradients together, whatever their clocks say: the ends
of their backward passes of one step are one instant. What stays between them, step after step, is how far
their clocks are apart.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tdbg_lab.store.machines import read_machines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Clocks", "clock_offsets"]

_TOGETHER = "backward"
"""Phase that all processes of a step leave together."""
_LEAST_STEPS = 8
_MOST_STEPS = 200
"""What these tell is believed from then on: times that were drawn once stay where they are."""
_LEAST_NS = 20_000_000
"""Clocks that are kept by a time server are nearer than this, and steps do not tell it more exactly."""
_STEADY = 0.1
"""The difference may vary by this share of itself, or by `_VARIES_NS`: else the processes are not in step."""
_VARIES_NS = 5_000_000
_EVERY_S = 2.0
"""How often is looked while too few steps are there."""

Spans = list[tuple[int, pa.Table]]


class Clocks:
    """What the clock of each rank is ahead of that of the first rank's machine. Not thread-safe.

    Parameters
    ----------
    path
        Run directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hosts: dict[int, str] = {}
        self._offsets: dict[str, int] = {}
        self._looked_s = -_EVERY_S
        self._settled = False

    @property
    def by_host(self) -> Mapping[str, int]:
        """What the clocks of machines are ahead, ns; those that agree are left out."""
        return self._offsets

    def ahead(self, ranks: Sequence[int], spans: Callable[[], Spans]) -> dict[int, int]:
        """What the clock of each rank is ahead, ns; empty where all agree, or nothing is known.

        Parameters
        ----------
        spans
            Gives the spans of all ranks, by their own clocks.
        """
        if len(ranks) > 1 and not self._settled and time.monotonic() - self._looked_s >= _EVERY_S:
            self._look(ranks, spans)
            self._looked_s = time.monotonic()
        if not self._offsets:
            return {}
        return {rank: self._offsets[host] for rank, host in self._hosts.items() if host in self._offsets}

    def _look(self, ranks: Sequence[int], spans: Callable[[], Spans]) -> None:
        self._hosts = {one.rank: one.host for one in read_machines(self._path) if one.host}
        known = all(rank in self._hosts for rank in ranks)
        if len(set(self._hosts.values())) < 2:
            self._settled = known
            return
        self._offsets, steps = clock_offsets(spans(), self._hosts)
        self._settled = known and steps >= _MOST_STEPS


def clock_offsets(
    spans: Iterable[tuple[int, pa.Table]], hosts: Mapping[int, str]
) -> tuple[dict[str, int], int]:
    """What the clock of each machine is ahead of that of the lowest rank's, ns, where they differ.

    Parameters
    ----------
    spans
        Rank and spans of each segment.
    hosts
        Machine of each rank.

    Returns
    -------
    Offsets by machine, and the number of steps that tell the least known of them.
    """
    first: dict[str, int] = {}
    for rank in sorted(hosts):
        first.setdefault(hosts[rank], rank)
    ends = _ends(spans, set(first.values()))
    own, *others = first.values()
    offsets, told = {}, _MOST_STEPS
    for rank in others:
        apart = _apart(ends.get(own), ends.get(rank))
        told = min(told, len(apart))
        if (offset := _offset(apart)) is not None:
            offsets[hosts[rank]] = offset
    return offsets, told


_Ends = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
"""Steps, ascending, and when the phase ended in them, ns."""


def _ends(spans: Iterable[tuple[int, pa.Table]], ranks: set[int]) -> dict[int, _Ends]:
    """When each rank left the last exchange of each step."""
    found: dict[int, list[pa.Table]] = {}
    for rank, table in spans:
        if rank in ranks:
            rows = pc.and_(pc.equal(table["phase"], _TOGETHER), pc.greater_equal(table["step"], 0))
            found.setdefault(rank, []).append(table.filter(rows).select(["step", "start_ns", "duration_ns"]))
    return {rank: _last_ends(pa.concat_tables(tables)) for rank, tables in found.items()}


def _last_ends(table: pa.Table) -> _Ends:
    step = table["step"].to_numpy().astype(np.int64)
    end = table["start_ns"].to_numpy() + table["duration_ns"].to_numpy()
    order = np.lexsort((end, step))
    step, end = step[order], end[order]
    last = np.append(np.diff(step) != 0, True) if len(step) else np.empty(0, bool)
    return step[last], end[last].astype(np.int64)


def _apart(own: _Ends | None, other: _Ends | None) -> NDArray[np.int64]:
    """What the other rank seems to be behind at the first steps that both have, ns."""
    if own is None or other is None:
        return np.empty(0, np.int64)
    _, here, there = np.intersect1d(own[0], other[0], assume_unique=True, return_indices=True)
    return other[1][there][:_MOST_STEPS] - own[1][here][:_MOST_STEPS]


def _offset(apart: NDArray[np.int64]) -> int | None:
    """The steady part of a difference, ns; None where it is small, or not steady."""
    if len(apart) < _LEAST_STEPS:
        return None
    middle = int(np.median(apart))
    varies = float(np.median(np.abs(apart - middle)))
    if abs(middle) < _LEAST_NS or varies > max(_STEADY * abs(middle), _VARIES_NS):
        return None
    return middle
