"""Where the time of training goes: spans made into shares and into steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.profiler.spans import OWN_PHASES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

__all__ = [
    "OUTER",
    "OWN",
    "StepTimes",
    "exclusive_ns",
    "step_times",
    "training_spans",
    "with_own_time",
    "without_inner",
]

OUTER = ("profile",)
"""Phases that lie over the others and are no part of a step."""
OWN = OWN_PHASES
"""Phases that follow each other in the training thread; users' phases may hold them, or lie within."""


def training_spans(spans: DataFrame) -> DataFrame:
    """Phases of training, without what lies over them and without operators of imported traces."""
    known = spans["step"].to_numpy() >= 0
    phase = spans["phase"].astype(str)
    return spans[known & ~phase.isin(OUTER).to_numpy()]


def exclusive_ns(spans: DataFrame) -> NDArray[np.float64]:
    """Time of each span without the spans within it, shape ``(N,)``, ns.

    Spans of one rank and thread nest. Those of `OWN` phases do not overlap one another.
    """
    own = spans["phase"].astype(str).isin(OWN).to_numpy()
    place = spans["rank"].to_numpy(dtype=np.int64) * 2**40 + spans["thread"].to_numpy(dtype=np.int64)
    start = spans["start_ns"].to_numpy(dtype=np.int64)
    return without_inner(start, spans["duration_ns"].to_numpy(dtype=np.float64), own, place)


def with_own_time(spans: DataFrame) -> DataFrame:
    """The spans with their ``phase`` as text, and as ``time`` that of `exclusive_ns`, ns."""
    return spans.assign(phase=spans["phase"].astype(str), time=exclusive_ns(spans))


def without_inner(
    start_ns: NDArray[np.int64],
    length_ns: NDArray[np.float64],
    own: NDArray[np.bool_],
    place: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Time of each span without the spans within it; all columns of shape ``(N,)``.

    Parameters
    ----------
    own
        Whether its phase is one of `OWN`.
    place
        Number of its thread: spans of one thread nest.
    """
    answer = length_ns.copy()
    for each in np.unique(place[~own]):
        rows = np.flatnonzero(place == each)
        _subtract_inner(rows[np.lexsort((-length_ns[rows], start_ns[rows]))], start_ns, length_ns, answer)
    shown: NDArray[np.float64] = np.maximum(answer, 0.0)
    return shown


def _subtract_inner(
    order: NDArray[np.int64],
    start: NDArray[np.int64],
    length: NDArray[np.float64],
    answer: NDArray[np.float64],
) -> None:
    """Take from each span of one thread, in order of time, what the next inner ones need."""
    begins, ends = start[order].tolist(), (start[order] + length[order]).tolist()
    stack: list[int] = []
    inner = [0.0] * len(order)
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        if stack:
            inner[stack[-1]] += min(end, ends[stack[-1]]) - begin
        stack.append(i)
    answer[order] -= np.array(inner)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """How long steps took: all columns have shape ``(S,)``, by rank and step."""

    rank: NDArray[np.int64]
    step: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    duration_s: NDArray[np.float64]
    """From its first phase to the first phase of the next step."""

    def outliers(self, stddev: float) -> NDArray[np.bool_]:
        """Steps that took longer than the mean and this many standard deviations."""
        if len(self.duration_s) < 3:
            return np.zeros(len(self.duration_s), dtype=np.bool_)
        limit = self.duration_s.mean() + stddev * self.duration_s.std()
        return np.asarray(self.duration_s > limit)


def step_times(spans: DataFrame) -> StepTimes:
    """Steps of training spans that are followed by another one; evaluation counts to its step."""
    none = np.empty(0, dtype=np.int64)
    spans = training_spans(spans)
    if not len(spans):
        return StepTimes(none, none, none, np.empty(0))
    step = spans["step"].to_numpy(dtype=np.int64)
    rank = spans["rank"].to_numpy(dtype=np.int64)
    start = spans["start_ns"].to_numpy(dtype=np.int64)
    order = np.lexsort((start, step, rank))
    step, rank, start = step[order], rank[order], start[order]
    first = np.flatnonzero((np.diff(step, prepend=-2) != 0) | (np.diff(rank, prepend=-2) != 0))
    step, rank, start = step[first], rank[first], start[first]
    follows = (np.diff(step) == 1) & (np.diff(rank) == 0)
    duration = np.diff(start)[follows] / 1e9
    kept = np.flatnonzero(follows)
    return StepTimes(rank[kept], step[kept], start[kept], duration)
