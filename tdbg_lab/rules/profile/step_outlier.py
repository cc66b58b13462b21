"""Steps that take far longer than the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.analysis.phases import OWN
from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.losses.state import gathers
from tdbg_lab.rules.profile.activity_rule import PhaseRule
from tdbg_lab.rules.profile.machine import other_programs
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.span_log import PhaseTimes
    from tdbg_lab.rules.view import RunView

__all__ = ["StepOutlier"]

_CROWDED = 90.0
"""Load of all cores from which programs wait for each other, percent."""
_HELD = 0.75
_COMPUTED = ("forward", "backward", "optimizer", "step", "boosting")
_LEAST_GAPS = 4
"""Fewer even distances may be chance."""
_MOST_SAVED = 0.9
_MUCH = 20.0
"""Part of the processor that other programs take, when they are to blame, percent."""
_SPREAD = 0.5
"""Part of all steps that lies between the first and the last slow one, where they are no burst."""
_STARTING_NS = 20 * 10**9
"""Our own processes, which start with the run, take the processor meanwhile."""


@rule("step_outlier", title="Slow steps")
@dataclass(frozen=True, kw_only=True)
class StepOutlier(PhaseRule):
    """Some steps take several times as long as the typical one, and together cost a good part of the time.

    The finding says in which phase the extra time went, and whether the slow steps come at even distances, as
    checkpoints, logging and new epochs do. Evaluation does not count: its time is its own; nor does what a
    program that gathers its own data does before it trains on them, unless it names it. It is a warning when
    they do, or when a phase is to blame that the user named, and costs much; else it may be the machine:
    a notice, which says how much of a full processor other programs take. What comes at no even distances
    within the first 20 s of a run, while our own processes start, is left to the machine.

    With `classic`, the condition of SageMaker Debugger to the letter: after 100 steps, more than `n_outliers`
    steps longer than the mean and `stddev` standard deviations.
    """

    factor: float = 3.0
    """A slow step takes this many times the median."""
    max_cost: float = 0.05
    """Share of the time that the slow steps may cost, beyond what typical ones would have taken."""
    min_extra_ms: float = 50.0
    """A slow step takes this much longer than the median: other jobs on the machine delay steps by less,
    ms."""
    min_count: int = 3
    """Least number of slow steps."""
    min_steps: int = 50
    """Least number of steps looked at."""
    classic: bool = False
    stddev: float = 3.0
    """Classic: standard deviations above the mean."""
    n_outliers: int = 10
    """Classic: slow steps that are tolerated."""
    mode: str | None = None
    """Classic: mode of the steps; only training steps are timed here."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("factor", above=1)
        self.require("max_cost", above=0, below=1)
        self.require("min_extra_ms", at_least=0)
        self.require("min_count", "min_steps", at_least=2)
        self.require("stddev", above=0)
        self.require("n_outliers", at_least=1)

    def judge(self, run: RunView) -> Finding | None:
        """Look at the steps of every rank; the one whose slow steps cost most."""
        ranks = run.activity.spans.ranks if run.activity else []
        found = [one for rank in ranks if (one := self._rank(run, rank)) is not None]
        return max(found, key=lambda one: float(one.evidence["cost_percent"]), default=None)

    def _rank(self, run: RunView, rank: int) -> Finding | None:
        times = run.phase_times(rank) if self.classic else run.phase_times(rank).training()
        length_s = times.besides() if self.classic else _without_ours(times)
        held = run.active is not None
        slow = self._slow(length_s, held=held)
        if not slow.any():
            return None
        phase = _phase_of(times, slow)
        every = _period(times.step[slow & _blamed(times, slow, phase)])
        is_odd = every > 0 or phase not in OWN
        if not self.classic and not is_odd:
            later = times.start_ns >= run.info.created_ns + _STARTING_NS
            slow = self._enough(slow & later, held=held)
            if not slow.any() or np.ptp(np.flatnonzero(slow)) < _SPREAD * len(slow):  # a burst: the machine's
                return None
        median_s = float(np.median(length_s))
        cost = float(np.maximum(length_s[slow] - median_s, 0.0).sum() / max(length_s.sum(), 1e-12))
        if not self.classic:
            if phase in _COMPUTED and _is_capture(times, slow):
                return None
            if cost < self.max_cost * (_HELD if held else 1.0):
                return None
            if phase in {*OWN, "other"} and gathers(run):
                return None
        told = _Slow(times.step[slow], len(length_s), float(np.median(length_s[slow])), median_s, cost)
        bad = self.classic or (is_odd and cost >= 2 * self.max_cost)
        severity = Severity.WARNING if bad else Severity.NOTICE
        return self._found(run, rank, told, phase, every, severity)

    def _found(  # noqa: PLR0917 - what is told, in its order
        self, run: RunView, rank: int, slow: _Slow, phase: str, every: int, severity: Severity
    ) -> Finding:
        come = f", every {every} steps," if every else ""
        slow_ms, typical_ms = slow.slow_s * 1e3, slow.typical_s * 1e3
        others = 0.0 if every else _crowd(run, rank)
        return self.finding(
            run.step,
            f"{len(slow.steps)} of the last {slow.of:,} steps{come} take {slow_ms / typical_ms:.3g} times "
            f"as long as the typical one ({slow_ms:.3g} against {typical_ms:.3g} ms), mostly in "
            f"{_where(phase)}: without that, training would take about {slow.cost:.0%} less time.",
            severity=severity,
            evidence={
                "slow_steps_count": len(slow.steps),
                "steps_count": slow.of,
                "slow_step_ms": slow_ms,
                "typical_step_ms": typical_ms,
                "cost_percent": 100 * slow.cost,
                "phase": phase,
                "period_steps": every,
                "last_slow_step": int(slow.steps[-1]),
                **({"other_programs_cpu_percent": others} if others else {}),
            },
            advice=(*_make_room(others), *_advice(phase, every)),
            view=ViewRef("step_times", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )

    def _slow(self, length_s: NDArray[np.float64], *, held: bool) -> NDArray[np.bool_]:
        none = np.zeros(len(length_s), np.bool_)
        if self.classic:
            slow = length_s > length_s.mean() + self.stddev * length_s.std() if len(length_s) > 100 else none
            return slow if slow.sum() > self.n_outliers else none
        if len(length_s) < self.min_steps:
            return none
        median_s = float(np.median(length_s))
        limit = max(self.factor * median_s, median_s + self.min_extra_ms / 1e3)
        return self._enough(length_s > limit, held=held)

    def _enough(self, slow: NDArray[np.bool_], *, held: bool) -> NDArray[np.bool_]:
        """The slow steps, or none where they are too few to speak of."""
        return slow if slow.sum() >= (1 if held else self.min_count) else np.zeros_like(slow)


class _Slow(NamedTuple):
    """The slow steps of a rank."""

    steps: NDArray[np.int64]
    of: int
    """Steps looked at."""
    slow_s: float
    typical_s: float
    cost: float
    """Share of the time."""


def _without_ours(times: PhaseTimes) -> NDArray[np.float64]:
    """Length of steps without what capture does in them, s.

    Its work on a saved step goes on in other threads, and delays what comes next: longer waiting there is
    left out, unless nearly all steps are saved.
    """
    saved = times.of("capture") > 0
    near = saved | np.concatenate([[False], saved[:-1]])
    data_s = times.of("data")
    if not 0 < near.mean() < _MOST_SAVED:
        return times.besides("capture")
    ours_s = np.where(near, np.maximum(data_s - np.median(data_s), 0.0), 0.0)
    answer: NDArray[np.float64] = times.besides("capture") - ours_s
    return answer


def _is_capture(times: PhaseTimes, slow: NDArray[np.bool_]) -> bool:
    """Whether the slow steps are mostly those that are saved, further than chance makes them.

    On a busy machine, and while the kernels are compiled for the first time, hooks of layers show there.
    """
    saved = times.of("capture") > 0
    usual = float(saved.mean())
    return usual < _MOST_SAVED and float(saved[slow].mean()) >= (1.0 + usual) / 2


def _phase_of(times: PhaseTimes, slow: NDArray[np.bool_]) -> str:
    """The phase that takes the time which other steps do not take."""
    usual = times.seconds[~slow] if (~slow).any() else times.seconds
    extra = times.seconds[slow].mean(axis=0) - np.median(usual, axis=0)
    return times.names[int(extra[: len(times.names)].argmax())] if times.names else ""


def _blamed(times: PhaseTimes, slow: NDArray[np.bool_], phase: str) -> NDArray[np.bool_]:
    """Steps with much of this phase: a machine that is busy makes others slow, at no even distances."""
    spent_s = times.of(phase)
    blamed: NDArray[np.bool_] = spent_s > 0.5 * np.median(spent_s[slow])
    return blamed


def _period(steps: NDArray[np.int64]) -> int:
    """Distance of the slow steps when it is always the same; 0 when it is not."""
    gaps = np.diff(steps)
    if len(gaps) < _LEAST_GAPS:
        return 0
    usual = int(np.median(gaps))
    return usual if usual > 1 and (gaps % usual == 0).mean() >= 0.8 else 0


def _crowd(run: RunView, rank: int) -> float:
    """Percent of a full processor that other programs take; 0 when it is not full, or with training alone."""
    busy, others = other_programs(run, rank)
    return others if busy >= _CROWDED and others >= _MUCH else 0.0


def _make_room(others: float) -> tuple[str, ...]:
    if not others:
        return ()
    return (f"Other programs take {others:.0f}% of this machine's processor, which is full: end them first.",)


def _where(phase: str) -> str:
    return "what the loop does between two steps (data)" if phase == "data" else phase


def _advice(phase: str, every: int) -> tuple[str, ...]:
    told: tuple[str, ...]
    if phase == "data":
        told = (
            "A checkpoint, logging, or workers that start anew each epoch (persistent_workers=True)?",
            "Name the parts, with handle.phase('checkpoint'): the finding then says which one it is.",
        )
    elif phase == "boosting":
        told = ()
    elif phase in _COMPUTED:
        told = (
            "Batches of varying length: sort them by length, or pad to a few lengths.",
            "New shapes are tuned or compiled first: cudnn.benchmark and torch.compile want fixed ones.",
        )
    else:
        told = (f"Make {phase} rarer or let it go on in the background, such as torch.save in a thread.",)
    last = (
        f"Click a slow step to see it on the timeline{f': they come every {every} steps' if every else ''}."
    )
    return (*told, last)
