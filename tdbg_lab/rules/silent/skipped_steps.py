"""Gradients that are computed and thrown away: the optimizer does not step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.consequences import NOT_MOVED
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, facts_below, lasting, noted, worst

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["SkippedSteps"]


@rule("skipped_steps", title="Optimizer steps skipped")
@dataclass(frozen=True, kw_only=True)
class SkippedSteps(LoopRule):
    """Gradients are computed and reset without an optimizer step in between: that work is lost.

    Of several optimizers, one that never stepped is judged: players of a game (GAN) throw gradients away by
    design, and one of them may begin long before the other. A step that a gradient scaler leaves out, and
    what an optimizer does within a closure, do not count.
    """

    lost: int = 4
    """Backward passes lost since the last step that are reported at once."""
    patience: int = 3
    """Steps in a row with a loss of at least one."""

    explains: ClassVar[tuple[str, ...]] = NOT_MOVED
    _ADVICE: ClassVar = (
        "Call optimizer.step() after each backward pass, before gradients are reset: that of each optimizer.",
        "To accumulate over micro-batches, call zero_grad only when a step was made.",
        "Check the condition under which step() is called.",
        "With a GradScaler look at scaler.get_scale(): where it is infinite every step is left out.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("lost", "patience", at_least=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """What was lost since the step before."""
        if any(noted(run, f"{fact}_gradients/1") for fact in ("stale", "discarded")):  # several optimizers
            return self._check_idle(step, run)
        lost = worst(run, "discarded_gradients")
        waiting = worst(run, "waiting_gradients")
        many = lost >= self.lost or waiting >= 32 * self.lost
        if not many and (lost < 1 or lasting(run, "discarded_gradients") < self.patience):
            return None
        what = (
            f"{lost:.0f} of the gradients since the last optimizer step were reset before a step was made"
            if lost
            else f"{waiting:.0f} backward passes were made since the last optimizer step"
        )
        return self._found(
            step,
            f"{what}: the optimizer does not step.",
            {"gradients_lost_count": lost, "backward_passes_waiting_count": waiting},
            severity=Severity.CRITICAL if many else Severity.WARNING,
        )

    def _check_idle(self, step: int, run: RunView) -> Finding | None:
        """One of several optimizers that did not step even once."""
        idle = facts_below(run, "never_stepped")
        if not idle:
            return None
        key, name, lost = idle[0]
        return self._found(
            step,
            f"{lost:.0f} gradients of {name} were computed and reset, and the optimizer that holds it has "
            "never stepped.",
            {"gradients_lost_count": lost, "module": key.module},
            tensor=name,
        )

    def _found(
        self,
        step: int,
        message: str,
        evidence: dict[str, float | int | str],
        *,
        severity: Severity = Severity.WARNING,
        tensor: str = "",
    ) -> Finding:
        return self.finding(
            step,
            message,
            severity=severity,
            tensor=tensor,
            evidence=evidence,
            advice=self._ADVICE,
            view=ViewRef("scalars", {}),
        )
