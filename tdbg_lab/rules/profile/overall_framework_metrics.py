"""Where the time of training goes, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import PhaseRule
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["OverallFrameworkMetrics"]

_MOST_OTHERS = 0.25
_MOST_OF_ONE = 0.7


@rule("overall_framework_metrics", title="Overall framework metrics")
@dataclass(frozen=True, kw_only=True)
class OverallFrameworkMetrics(PhaseRule):
    """A summary, not a fault: the share of each phase in the time of the last steps, in one notice.

    It says when training and evaluation leave more than a quarter of the time to others, and when forward or
    backward takes more than 70 % of the two. Not among the default rules. With `classic` it finds nothing, as
    in SageMaker Debugger, where it only writes its numbers into the report.
    """

    min_steps: int = 20
    """Least number of steps."""
    classic: bool = False

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_steps", at_least=1)

    def judge(self, run: RunView) -> Finding | None:
        """Put the shares together."""
        times = run.phase_times()
        if len(times) < self.min_steps or self.classic:
            return None
        whole = float(times.seconds.sum()) or 1.0
        found = {name: float(times.of(name).sum()) / whole for name in times.names}
        shares = dict(sorted(found.items(), key=lambda item: -item[1]))
        forward, backward = shares.get("forward", 0.0), shares.get("backward", 0.0)
        others = 1.0 - sum(
            shares.get(name, 0.0) for name in ("forward", "backward", "optimizer", "eval", "step")
        )
        words = [f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.01]
        notes = []
        if others > _MOST_OTHERS:
            notes.append(f"{others:.0%} is neither training nor evaluation")
        if max(forward, backward) > _MOST_OF_ONE * (forward + backward) > 0:
            notes.append(
                f"{'forward' if forward > backward else 'backward'} takes far more than its counterpart"
            )
        return self.finding(
            run.step,
            f"Time of {len(times):,} steps: "
            f"{', '.join(words)}{'; ' + ', and '.join(notes) if notes else ''}.",
            severity=Severity.NOTICE,
            evidence={f"{name}_percent": 100 * share for name, share in shares.items()},
            advice=("See the view of the phases, and profile some steps for the operators within them.",),
            view=ViewRef("phases", {}),
        )
