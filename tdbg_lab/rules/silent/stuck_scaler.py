"""A gradient scaler that leaves out step after step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, fact, noted, worst

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["StuckScaler"]


@rule("stuck_scaler", title="Gradient scaler stuck")
@dataclass(frozen=True, kw_only=True)
class StuckScaler(LoopRule):
    """The gradient scaler of mixed precision leaves out step after step: gradients are infinite at any scale.

    A few steps left out at the beginning are how a scaler finds its scale (from 65,536 down), and one now
    and then is healthy. Where outputs or the loss are not finite either, no scale helps: ``exploding_tensor``
    names the layer then, and this follows from it.
    """

    in_a_row: int = 12
    """Steps left out in a row that make a warning."""
    in_a_row_critical: int = 20
    """Steps left out in a row that are critical: by then the scale has fallen a million times."""
    least_scale: float = 1.0
    """Scale below which a few steps left out are a warning."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "unchanged_tensor")
    _ADVICE: ClassVar = (
        "Look for the first layer with infinite or NaN outputs: it overflows in half precision.",
        "Use bfloat16, which needs no scaler, or keep that layer in float32 (autocast off).",
        "Lower the learning rate: weights may already be infinite.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("in_a_row", "in_a_row_critical", at_least=1)
        self.require("least_scale", above=0)

    def not_applicable(self, run: RunView) -> str:
        """Without a step that a scaler left out."""
        if why := super().not_applicable(run):
            return why
        return "" if noted(run, "skipped_in_a_row") else "No gradient scaler left out a step so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Steps left out at this place."""
        row = run.frame().get("check/skipped_in_a_row")
        if row is None:
            return None
        skipped, scale = worst(run, "skipped_in_a_row"), fact(run, "scale")
        if skipped < self.in_a_row and not (scale < self.least_scale and skipped >= 3):
            return None
        return self.finding(
            step,
            f"The gradient scaler left out {skipped:.0f} steps in a row; its scale is down to {scale:.3g}.",
            severity=Severity.CRITICAL if skipped >= self.in_a_row_critical else Severity.WARNING,
            tensor="optimizer/skipped_steps",
            evidence={"steps_left_out_in_a_row_count": skipped, "scale": scale},
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": ["optimizer/skipped_steps"]}),
        )
