"""Gradients that are never reset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, fact

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["StaleGradients"]


@rule("stale_gradients", title="Gradients not reset")
@dataclass(frozen=True, kw_only=True)
class StaleGradients(LoopRule):
    """Steps are made with gradients that still hold those of earlier steps: ``zero_grad`` is missing.

    Adding up several backward passes *before* one step is healthy and not reported; so is resetting
    gradients by hand, or by another call than ``zero_grad``.
    """

    patience: int = 3
    """Optimizer steps in a row whose gradients hold older ones."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "tensors")
    _ADVICE: ClassVar = (
        "Call optimizer.zero_grad() once for each optimizer.step(), before the backward pass.",
        "Where gradients are accumulated over micro-batches, reset them after each step.",
        "Check that zero_grad is called on the optimizer (or model) that steps, not on another one.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """The longest run of such steps over all optimizers."""
        names = [key.name.removeprefix("check/") for key in run.tensors(Kind.CHECK, regex=_NAMES)]
        stale = max((fact(run, name) for name in names), default=0.0)
        if stale < self.patience:
            return None
        return self.finding(
            step,
            f"The gradients of the last {stale:.0f} steps were added to those of earlier steps: "
            "they are not reset between optimizer steps.",
            severity=Severity.CRITICAL,
            tensor="optimizer/grad_norm",
            evidence={"steps_without_reset_count": stale},
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": ["optimizer/grad_norm"]}),
            step_first=max(0, step - int(stale) + 1),
        )


_NAMES = r"^check/stale_gradients(/\d+)?$"
