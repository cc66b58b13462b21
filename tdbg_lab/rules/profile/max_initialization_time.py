"""Training that takes long to begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import ActivityRule
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["MaxInitializationTime"]

_NS = 1e9
_TOLD_S = 60.0
"""Time after the first step in which the finding lasts, s."""


@rule("max_initialization_time", title="Long initialization")
@dataclass(frozen=True, kw_only=True)
class MaxInitializationTime(ActivityRule):
    """From the begin of the run to its first training step it takes too long.

    The run begins when ``attach`` is called: call it early to have downloads and preparation in. Asked live
    while no step comes, too. The classic condition is the same.
    """

    threshold: float = 20.0
    """Time to the first step, minutes."""
    classic: bool = False

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold", above=0)

    def not_applicable(self, run: RunView) -> str:
        """When the run does not say when it began."""
        return "" if run.info.created_ns else "This run does not say when it began."

    def judge(self, run: RunView) -> Finding | None:
        """Look at the time before the first phase of training."""
        first_ns = run.activity.spans.first_ns if run.activity else None
        if first_ns is None or run.activity is None or run.activity.now_ns - first_ns > _TOLD_S * _NS:
            return None
        took_min = (first_ns - run.info.created_ns) / _NS / 60
        return self._found(run.step, took_min, over=True) if took_min > self.threshold else None

    def idle(self, quiet_s: float, run: RunView) -> Finding | None:
        """Live: look at the time without a first step."""
        if run.step >= 0 or not run.info.created_ns:
            return None
        # The clock of the wall is asked once, and not again: it may be set while nothing comes.
        before_s = max(0.0, (run.opened_ns - run.info.created_ns) / _NS)
        took_min = (before_s + quiet_s) / 60
        return self._found(0, took_min, over=False) if took_min > self.threshold else None

    def _found(self, step: int, took_min: float, *, over: bool) -> Finding:
        text = "The first training step came after" if over else "No training step has come for"
        return self.finding(
            step,
            f"{text} {took_min:.3g} minutes; the limit is {self.threshold:g}.",
            severity=Severity.WARNING,
            evidence={"initialization_min": took_min, "limit_min": self.threshold},
            advice=(
                "Stream the data, or begin with what is there, instead of downloading all of it first.",
                "Prepare the data once and keep the result: tokenised, resized, in few large files.",
                "If it should be training: look where it waits, py-spy dump --pid PID.",
            ),
            view=ViewRef("timeline", {}),
        )
