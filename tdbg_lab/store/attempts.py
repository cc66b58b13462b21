"""Attempts of a rank at the same steps: ``rank-*/attempts.json``.

A training that goes on from a checkpoint makes steps again that it had made before it was cut off. What the
earlier attempt wrote stays in its files, but counts only up to where the later one goes on.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.store.layout import list_ranks, list_segments, modified_ns, read_json, write_json
from tdbg_lab.store.schema import MODE_CODE, MODES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "Attempt",
    "Attempts",
    "after_checkpoint",
    "attempts_stamp",
    "begin_attempt",
    "cut_other_ranks",
    "first_rank_attempts",
    "rank_attempts_stamp",
    "read_attempts",
]

_FILE: Final = "attempts.json"
_MAX_BYTES = 2**20
_NO_STEP = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One that went on from a checkpoint."""

    segment: int
    """Number of its first segment of statistics; those before it are of earlier attempts."""
    first_step: tuple[int, ...]
    """Of each of `MODES`: steps from here on are made anew."""
    time_ns: int = 0
    """When it began."""

    def replaces(self, other: Attempt) -> bool:
        """Whether nothing is cut by `other` that this later one does not cut."""
        return all(ours <= theirs for ours, theirs in zip(self.first_step, other.first_step, strict=True))


@dataclass(frozen=True, slots=True)
class Attempts:
    """Those of one rank that cut what was written before them; in the order of time."""

    known: tuple[Attempt, ...] = ()

    @property
    def latest(self) -> int:
        """First segment of the latest one; 0 without any."""
        return self.known[-1].segment if self.known else 0

    def end(self, segment: int, mode_code: int) -> int:
        """The step of a mode from which on what was written in a segment does not count."""
        later = (attempt.first_step[mode_code] for attempt in self.known if attempt.segment > segment)
        return min(later, default=_NO_STEP)

    def replaced(self, step: int, time_ns: int) -> bool:
        """Whether what was found then of a training step is of an attempt that does not count there."""
        train = MODE_CODE[str(Mode.TRAIN)]
        return any(one.time_ns > time_ns and one.first_step[train] <= step for one in self.known)

    def standing(
        self, segment: int, mode_codes: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which rows of a segment, given by mode and step, count."""
        ends = np.array([self.end(segment, code) for code in range(len(MODES))])
        return np.asarray(steps < ends[mode_codes])


def after_checkpoint(step: int) -> dict[Mode, int]:
    """Where training goes on at `step`: an evaluation there was made after the step before it, and stands."""
    return {mode: step if mode is Mode.TRAIN else step + 1 for mode in MODES}


def begin_attempt(rank_path: Path, segment: int, first_step: Mapping[Mode, int]) -> Attempts:
    """Say where a rank goes on, before its segment `segment` is begun; also what is then known of it.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    new = Attempt(segment, tuple(first_step[mode] for mode in MODES), time.time_ns())
    kept = [one for one in read_attempts(rank_path).known if one.segment < segment and not new.replaces(one)]
    rows = [asdict(one) for one in (*kept, new)]
    write_json(rank_path / _FILE, {"modes": [str(mode) for mode in MODES], "attempts": rows})
    return Attempts((*kept, new))


def cut_other_ranks(run_path: Path, own: int, first_step: Mapping[Mode, int]) -> None:
    """Say it of the ranks beside one's own that wrote before: training may go on with fewer of them.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    for rank, directory in list_ranks(run_path):
        segments = list_segments(directory)["stats"]
        if rank != own and segments:
            begin_attempt(directory, segments[-1].number + 1, first_step)


def first_rank_attempts(run_path: Path) -> Attempts:
    """Those of the lowest rank, which stand for the run."""
    ranks = list_ranks(run_path)
    return read_attempts(ranks[0][1]) if ranks else Attempts()


def attempts_stamp(run_path: Path) -> int:
    """Changes when a run goes on from a checkpoint."""
    ranks = list_ranks(run_path)
    return rank_attempts_stamp(ranks[0][1]) if ranks else 0


def rank_attempts_stamp(rank_path: Path) -> int:
    """Changes when a rank does."""
    return modified_ns(rank_path / _FILE)


def read_attempts(rank_path: Path) -> Attempts:
    """What is said of a rank; nothing where that cannot be read."""
    try:
        value = read_json(rank_path / _FILE, _MAX_BYTES)
        rows = value["attempts"] if value["modes"] == [str(mode) for mode in MODES] else []
        found = [_attempt(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError):
        return Attempts()
    return Attempts(tuple(sorted(found, key=lambda attempt: attempt.segment)))


def _attempt(row: dict[str, Any]) -> Attempt:
    """One of untrusted values.

    Raises
    ------
    ValueError
        If they cannot be one.
    """
    segment, steps, time_ns = row["segment"], row["first_step"], row["time_ns"]
    numbers = [segment, time_ns, *steps]
    if len(steps) != len(MODES) or not all(type(one) is int and 0 <= one < 2**62 for one in numbers):
        raise ValueError("an attempt is described wrongly")
    return Attempt(segment, tuple(steps), time_ns)
