"""A process that the others of a distributed training wait for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import ViewRef
from tdbg_lab.rules.profile.activity_rule import PhaseRule
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import noted

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.span_log import PhaseTimes
    from tdbg_lab.rules.view import RunView

__all__ = ["Straggler"]

_TOGETHER = ("backward", "optimizer", "eval")
"""Phases in which processes wait for each other."""
_HELD = 0.75


@rule("straggler", title="Straggling rank")
@dataclass(frozen=True, kw_only=True)
class Straggler(PhaseRule):
    """One rank comes late to the exchange of gradients, step after step, and the others wait for it.

    What each rank needs from the begin of its step to its backward pass is compared, at the same steps. A
    rank that is late now and then, or ranks that are late in turns, are no stragglers, nor are the stages of
    a pipeline, which wait for what the one before them gives.
    """

    max_behind: float = 0.1
    """Share of the step's time that the slowest rank may be behind the typical one."""
    min_behind_ms: float = 2.0
    """Delay below it is no matter, ms."""
    min_constancy: float = 0.6
    """Share of the steps in which it is the last."""
    window: int = 200
    """Last steps that are looked at."""
    min_steps: int = 20
    """Least number of steps that all ranks have."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_behind", "min_constancy", above=0, below=1)
        self.require("min_behind_ms", at_least=0)
        self.require("window", "min_steps", at_least=2)

    def not_applicable(self, run: RunView) -> str:
        """With a single process, or a pipeline."""
        if why := super().not_applicable(run):
            return why
        if noted(run, "stage"):
            return "Each rank has a stage of a pipeline: they wait for each other by design."
        several = run.activity is not None and len(run.activity.spans.ranks) > 1
        return (
            ""
            if several
            else "Only one process of this run has recorded steps so far: there is none to compare it with."
        )

    def judge(self, run: RunView) -> Finding | None:
        """Compare the ranks at the steps that all have."""
        ranks = run.activity.spans.ranks if run.activity else []
        times = [_by_step(run.phase_times(rank).training()) for rank in ranks]
        shared = reduce(np.intersect1d, [one.step for one in times])[-self.window :] if times else np.empty(0)
        if len(ranks) < 2 or len(shared) < self.min_steps:
            return None
        own = [one[np.searchsorted(one.step, shared)] for one in times]
        before_s = np.stack([one.besides(*_TOGETHER) for one in own])
        step_s = float(np.median([np.median(one.besides("eval")) for one in own]))
        last = int(np.median(before_s, axis=1).argmax())
        behind_s = float(np.median(before_s[last] - np.median(np.delete(before_s, last, axis=0), axis=0)))
        constancy = float((before_s.argmax(axis=0) == last).mean())
        limit_s = max(self.max_behind * step_s, self.min_behind_ms / 1e3) * (_HELD if run.active else 1.0)
        if behind_s < limit_s or constancy < self.min_constancy:
            return None
        phase, more_s = _phase_of(own, last)
        gain = min(behind_s / max(step_s, 1e-9), 1.0)
        return self.finding(
            run.step,
            f"Rank {ranks[last]} is slower than the others, which wait about {behind_s * 1e3:.3g} ms a step "
            f"for it, mostly "
            f"because its {phase} takes {more_s * 1e3:.3g} ms longer: as fast as the others, it would save "
            f"about {gain:.0%}.",
            evidence={
                "behind_ms": behind_s * 1e3,
                "step_ms": step_s * 1e3,
                "gain_percent": 100 * gain,
                "last_in_percent": 100 * constancy,
                "phase": phase,
                "phase_excess_ms": more_s * 1e3,
                "ranks_count": len(ranks),
            },
            advice=_advice(phase, ranks[last]),
            view=ViewRef("ranks", {}),
            rank=ranks[last],
        )


def _by_step(times: PhaseTimes) -> PhaseTimes:
    """Steps in ascending order; of those that a restart made again, the last time."""
    _, back = np.unique(times.step[::-1], return_index=True)
    return times[len(times) - 1 - back]


def _phase_of(own: list[PhaseTimes], last: int) -> tuple[str, float]:
    """The phase that makes a rank late, and by how much, s."""
    names = [name for name in own[last].names if name not in _TOGETHER]
    excess = {
        name: float(
            np.median(own[last].of(name))
            - np.median([np.median(one.of(name)) for at, one in enumerate(own) if at != last])
        )
        for name in names
    }
    name = max(excess, key=excess.__getitem__)
    return name, excess[name]


def _advice(phase: str, rank: int) -> tuple[str, ...]:
    if phase == "data":
        first = f"Give rank {rank} as many loader workers, as near a disk and as large a shard as others."
    else:
        first = f"Look whether rank {rank} gets larger or longer batches: balance them by length."
    return (
        first,
        f"Look at the machine of rank {rank}: other jobs on it, a throttled or different GPU, fewer cores.",
    )
