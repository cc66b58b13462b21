"""Weights that are set anew in the middle of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, facts_below

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["ReplacedWeights"]


@rule("replaced_weights", title="Weights set anew")
@dataclass(frozen=True, kw_only=True)
class ReplacedWeights(LoopRule):
    """Weights were changed between two optimizer steps, and have nothing in common with those before.

    A re-initialisation, or a wrong checkpoint loaded into a running training. So is going back to exactly the
    weights that the recording began with: all that was learnt is gone. Averages of weights, clipping
    and going back to a checkpoint of its own leave weights alike, and are not reported.
    """

    likeness: float = 0.5
    """Correlation of the values after and before, below which weights count as replaced."""

    explains: ClassVar[tuple[str, ...]] = NOT_LEARNING
    _ADVICE: ClassVar = (
        "Look for reset_parameters(), apply(init) or load_state_dict() inside the training loop.",
        "If a part is meant to start anew, reset its state in the optimizer, too.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("likeness", at_least=-1, at_most=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Name the first of them in the order of the model."""
        back = [(name, 1 - value) for _, name, value in facts_below(run, "set_back")]
        bad = back + [
            (name, 1 - value) for _, name, value in facts_below(run, "replaced") if 1 - value < self.likeness
        ]
        if not bad or step == 0:
            return None
        name, likeness = bad[0]
        more = f" and {len(bad) - 1} more weights" if len(bad) > 1 else ""
        what = "back to what they were when recording began" if back else "anew"
        return self.finding(
            step,
            f"{name}{more} were set {what} before step {step}: correlation {likeness:.2f} with those before.",
            severity=Severity.WARNING,
            tensor=name,
            evidence={
                "weights_replaced_count": len(bad),
                "correlation_with_before": round(likeness, 4),
                "weights": ", ".join(one for one, _ in bad[:20]),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": name}),
        )
