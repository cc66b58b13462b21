"""Phases of training as rules see them: the last steps of each rank, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.analysis.phases import OUTER, OWN, without_inner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["PhaseTimes", "SpanLog", "Spans"]

_STEPS = 2048
_SPANS = 16384
_PHASES = 12
_OTHER = "other"
_PENDING = 65536


@dataclass(frozen=True, slots=True)
class Spans:
    """Phases one by one, in the order of their begin; columns of shape ``(N,)``."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    step: NDArray[np.int64]
    phase: NDArray[np.int64]
    """Place in `names`."""
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """Where the time of complete steps of one rank went, in the order they were made."""

    step: NDArray[np.int64]
    """Shape ``(S,)``."""
    start_ns: NDArray[np.int64]
    """Begin of the first phase, shape ``(S,)``."""
    seconds: NDArray[np.float64]
    """Time of each phase without the phases within it, shape ``(S, P)``."""
    names: tuple[str, ...]
    """The ``P`` phases."""

    def of(self, *phases: str) -> NDArray[np.float64]:
        """Time in these phases, s, shape ``(S,)``."""
        columns = [place for place, name in enumerate(self.names) if name in phases]
        answer: NDArray[np.float64] = self.seconds[:, columns].sum(axis=1)
        return answer

    def besides(self, *phases: str) -> NDArray[np.float64]:
        """Time in all other phases, s, shape ``(S,)``."""
        return self.of(*(name for name in self.names if name not in phases))

    def training(self, *, skip: int = 2) -> PhaseTimes:
        """Steps without an evaluation in them and without the first `skip`, which fill caches."""
        kept = self.of("eval") == 0
        kept[: min(skip, len(kept) // 4)] = False
        return self[kept]

    def last(self, n: int) -> PhaseTimes:
        """The last `n` steps."""
        return self[slice(-n, None)]

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.int64]) -> PhaseTimes:
        return PhaseTimes(self.step[rows], self.start_ns[rows], self.seconds[rows], self.names)

    def __len__(self) -> int:
        return len(self.step)


class SpanLog:
    """Takes spans as they end; a step counts when the next one has begun.

    A phase that lies around whole steps (one that the user opened for an epoch) is left out.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._ranks: dict[int, _Rank] = {}

    @property
    def ranks(self) -> list[int]:
        """Ranks with complete steps."""
        return sorted(rank for rank, own in self._ranks.items() if len(own.step))

    @property
    def first_ns(self) -> int | None:
        """Begin of the first phase of training, or None before."""
        return min((own.first_ns for own in self._ranks.values() if own.first_ns is not None), default=None)

    def times(self, rank: int | None = None) -> PhaseTimes:
        """Times of the last steps (2,048 at most) of a rank, by default of the lowest one."""
        own = self._chosen(rank)
        names = tuple(self._codes)
        if own is None:
            return PhaseTimes(_NONE, _NONE, np.empty((0, len(names))), names)
        return PhaseTimes(own.step, own.start_ns, own.seconds[:, : len(names)], names)

    def spans(self, rank: int | None = None) -> Spans:
        """The last spans (16,384 at most) of complete steps of a rank, by default of the lowest one."""
        own = self._chosen(rank)
        rows = np.empty((0, 4), np.int64) if own is None else own.spans
        return Spans(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], tuple(self._codes))

    def put(
        self,
        rank: int,
        phases: Sequence[str],
        start_ns: NDArray[np.int64],
        duration_ns: NDArray[np.int64],
        step: NDArray[np.int64],
    ) -> None:
        """Add spans that have ended."""
        known = np.array([phase not in OUTER for phase in phases], np.bool_) & (step >= 0)
        if not known.any():
            return
        codes = np.array([self._code(phase) for phase in phases], np.int64)
        rows = np.stack([start_ns, start_ns + np.maximum(duration_ns, 0), step, codes], axis=1)[known]
        self._ranks.setdefault(rank, _Rank()).put(rows)

    def settle(self) -> None:
        """Take in the steps that are complete."""
        names = tuple(self._codes)
        for own in self._ranks.values():
            own.settle(names)

    def _code(self, phase: str) -> int:
        if phase not in self._codes and len(self._codes) >= _PHASES - 1:
            phase = _OTHER
        return self._codes.setdefault(phase, len(self._codes))

    def _chosen(self, rank: int | None) -> _Rank | None:
        lowest = min(self.ranks, default=-1)
        return self._ranks.get(lowest if rank is None else rank)


class _Rank:
    """Steps and spans of one rank."""

    def __init__(self) -> None:
        self.step = self.start_ns = _NONE
        self.seconds = np.empty((0, _PHASES))
        self.spans = np.empty((0, 4), np.int64)
        self.first_ns: int | None = None
        self._pending: list[NDArray[np.int64]] = []
        self._settled_ns = -(2**62)

    def put(self, rows: NDArray[np.int64]) -> None:
        begin = int(rows[:, 0].min())
        self.first_ns = begin if self.first_ns is None else min(begin, self.first_ns)
        self._pending.append(rows)

    def settle(self, names: tuple[str, ...]) -> None:
        if not self._pending:
            return
        rows = np.concatenate(self._pending)[-_PENDING:]
        rows = rows[rows[:, 0] >= self._settled_ns]  # what lies around steps that are done comes too late
        rows = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
        changes = np.flatnonzero(np.diff(rows[:, 2])) + 1
        cut = int(changes[-1]) if len(changes) else 0
        self._pending = [rows[cut:]]
        if cut:
            self._take(rows[:cut], np.concatenate([[0], changes[:-1]]).astype(np.int64), names)
            self._settled_ns = int(rows[cut, 0]) if cut < len(rows) else self._settled_ns

    def _take(self, rows: NDArray[np.int64], first: NDArray[np.int64], names: tuple[str, ...]) -> None:
        """Add complete steps: `rows` by time, those of each step from `first` on."""
        time = _exclusive_s(rows, names)
        place = np.searchsorted(first, np.arange(len(rows)), side="right") - 1
        cells = np.bincount(
            place * _PHASES + rows[:, 3], weights=time, minlength=len(first) * _PHASES
        ).astype(np.float64)
        new = PhaseTimes(rows[first, 2], rows[first, 0], cells.reshape(-1, _PHASES), names)
        self.step = np.concatenate([self.step, new.step])[-_STEPS:]
        self.start_ns = np.concatenate([self.start_ns, new.start_ns])[-_STEPS:]
        self.seconds = np.concatenate([self.seconds, new.seconds])[-_STEPS:]
        self.spans = np.concatenate([self.spans, rows])[-_SPANS:]


def _exclusive_s(rows: NDArray[np.int64], names: tuple[str, ...]) -> NDArray[np.float64]:
    own = np.array([name in OWN for name in names], np.bool_)[rows[:, 3]]
    length = (rows[:, 1] - rows[:, 0]).astype(np.float64)
    return without_inner(rows[:, 0], length, own, np.zeros(len(rows), np.int64)) / 1e9


_NONE = np.empty(0, np.int64)
