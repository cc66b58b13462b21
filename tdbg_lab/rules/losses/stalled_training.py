"""Trainings that do not come on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["StalledTraining"]

_NS = 1e9


@rule("stalled_training", title="Stalled training")
@dataclass(frozen=True, kw_only=True)
class StalledTraining(Rule):
    """Nothing was written for much longer than this run ever took before.

    Evaluations, checkpoints and compilation make long pauses. So silence counts from `min_quiet_s` on and
    when it is `factor` times as long as the longest pause among the last `window` recorded steps. In a
    notebook, where a run stays open between cells, mute this rule or detach.

    With `classic`, the condition of SageMaker Debugger to the letter: nothing for `threshold` seconds
    (AWS developer guide, StalledTrainingRule). What was to be done then, stopping the job, is an action
    here: ``StalledTraining(actions=[StopTraining()])``.
    """

    min_quiet_s: float = 600.0
    """Least silence, s."""
    factor: float = 10.0
    """Silence, times the longest pause so far."""
    window: int = 64
    """Recorded steps whose pauses are compared."""
    classic: bool = False
    threshold: float = 1800.0
    """Classic: silence, s."""

    _ADVICE: ClassVar = (
        "Look where it waits: py-spy dump --pid PID, or the timeline of the run.",
        "A data loader that hangs: try num_workers=0. Several processes: one may have left an exchange.",
        "A full disk or a network file system that is gone stops checkpoints.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_quiet_s", "threshold", above=0)
        self.require("factor", at_least=1)
        self.require("window", at_least=2)

    def needs(self) -> Needs:
        """Anything that is written; the pauses are those of losses, weights or gradients."""
        return Needs(steps=self.window)

    def check(self, step: int, run: RunView) -> Finding | None:
        """After the fact: look at the pause before this step."""
        times = self._times(run, 2)
        pause_s = float(times[-1] - times[-2]) / _NS if len(times) > 1 else 0.0
        if pause_s <= (self.threshold if self.classic else self.min_quiet_s):
            return None
        limit_s = self._limit_s(self._times(run, self.window)[:-1])
        return self._found(step, pause_s, limit_s, over=True) if pause_s > limit_s else None

    def idle(self, quiet_s: float, run: RunView) -> Finding | None:
        """Live: look at the silence since the last write."""
        times = self._times(run, self.window)
        limit_s = self._limit_s(times)
        if quiet_s <= limit_s or not len(times):
            return None
        return self._found(run.step, quiet_s, limit_s, over=False)

    def _limit_s(self, times: np.ndarray) -> float:
        if self.classic:
            return self.threshold
        longest_s = float(np.diff(times).max()) / _NS if len(times) > 1 else 0.0
        return max(self.min_quiet_s, self.factor * longest_s)

    @staticmethod
    def _times(run: RunView, n: int) -> np.ndarray:
        """When the last `n` steps of each kind were written, ns, ascending."""
        found = {
            frame.step: frame.time_ns
            for mode in Mode
            for kind in (Kind.LOSS, Kind.WEIGHT, Kind.GRADIENT, Kind.SCALAR)
            for frame in run.frames(kind, n, mode)
        }
        return np.sort(np.array(list(found.values()), np.int64))

    def _found(self, step: int, quiet_s: float, limit_s: float, *, over: bool) -> Finding:
        verb = "was" if over else "has been"
        return self.finding(
            step,
            f"Nothing {verb} written for {quiet_s:.0f} s {'before' if over else 'since'} step {step}; "
            f"the limit is {limit_s:.0f} s.",
            evidence={"quiet_s": round(quiet_s, 1), "limit_s": round(limit_s, 1)},
            advice=self._ADVICE,
            view=ViewRef("timeline", {}),
        )
