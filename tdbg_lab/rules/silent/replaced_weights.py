"""Weights that are set anew in the middle of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, fact, facts_below
from tdbg_lab.rules.trend import trend_of

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["ReplacedWeights"]


@rule("replaced_weights", title="Weights set anew")
@dataclass(frozen=True, kw_only=True)
class ReplacedWeights(LoopRule):
    """Weights were changed between two optimizer steps, and have nothing in common with those before.

    A re-initialisation, or a wrong checkpoint loaded into a running training. So is going back to exactly the
    weights that the recording began with: all that was learnt is gone.

    So, too, is going back in the run's own past, once, while all goes well: an older checkpoint that was
    loaded, or an average of the weights that was put in for an evaluation and left in. Where the loss had
    become worse before, or the learning rate is changed at the same time, somebody meant to go back, as a
    search for the learning rate does: a notice.
    Averages beside the training, clipping, and methods that pull weights back again and again are not
    reported.
    """

    likeness: float = 0.5
    """Correlation of the values after and before, below which weights count as replaced."""

    explains: ClassVar[tuple[str, ...]] = NOT_LEARNING
    _ADVICE: ClassVar = (
        "Look for reset_parameters(), apply(init) or load_state_dict() inside the training loop.",
        "If a part is meant to start anew, reset its state in the optimizer, too.",
    )

    _SEARCH: ClassVar = "A search for the learning rate puts the weights back when it is over: that is meant."

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("likeness", at_least=-1, at_most=1)

    def needs(self) -> Needs:
        """Facts about the loop, losses and learning rates."""
        return Needs(kinds=(Kind.CHECK, Kind.LOSS, Kind.OPTIMIZER, Kind.WEIGHT))

    def check(self, step: int, run: RunView) -> Finding | None:
        """Name the first of them in the order of the model."""
        back = [(name, 1 - value) for _, name, value in facts_below(run, "set_back")]
        bad = back + [
            (name, 1 - value) for _, name, value in facts_below(run, "replaced") if 1 - value < self.likeness
        ]
        if not bad or step == 0:
            return self._gone_back(step, run)
        name, likeness = bad[0]
        others = len(bad) - 1
        more = f" and {others} more weight{'s' * (others > 1)}" if others else ""
        what = "back to what they were when recording began" if back else "anew"
        meant = bool(back) and _is_meant(run)
        return self.finding(
            step,
            f"{name}{more} were set {what} before step {step}: correlation {likeness:.2f} with those before.",
            severity=Severity.NOTICE if meant else Severity.WARNING,
            tensor=name,
            evidence={
                "weights_replaced_count": len(bad),
                "correlation_with_before": round(likeness, 4),
                "weights": ", ".join(one for one, _ in bad[:20]),
            },
            advice=(self._SEARCH, *self._ADVICE) if meant else self._ADVICE,
            view=ViewRef("histogram", {"tensor": name}),
        )

    def _gone_back(self, step: int, run: RunView) -> Finding | None:
        """Weights that lie where they were some time ago."""
        steps = int(fact(run, "went_back"))
        if not steps:
            return None
        return self.finding(
            step,
            f"Before step {step} the weights were set back to about what they were {steps} steps ago.",
            severity=Severity.NOTICE if _is_meant(run) else Severity.WARNING,
            tensor=next((key.name for key in run.tensors(Kind.WEIGHT) if len(key.shape) > 1), ""),
            evidence={"steps_back_count": steps},
            advice=(
                "Look for load_state_dict() inside the training loop, and which checkpoint it loads.",
                "Averaged weights (EMA, SWA) that are put in for an evaluation must be taken out after it.",
            ),
            view=ViewRef("overview", {"kind": "weight", "statistic": "l2"}),
        )


def _is_meant(run: RunView) -> bool:
    """Whether somebody had reason to go back, or begins something else with it."""
    return _had_become_worse(run) or _rate_changes(run)


def _had_become_worse(run: RunView) -> bool:
    """Whether some training loss was above its best, beyond its noise, before this step."""
    for name in run.losses():
        loss = run.scalars(name)
        trend = trend_of(loss.values[loss.steps < run.step])
        if trend is None:
            continue
        few = max(3, trend.points // 10)
        if trend.now > trend.best + 3.0 * trend.noise * np.sqrt(2.0 / few):
            return True
    return False


def _rate_changes(run: RunView) -> bool:
    """Whether a learning rate is less than two thirds of the last one, or half as much more."""
    for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/"):
        last = run.scalars(key.name).values[-2:]
        if len(last) == 2 and not 2 / 3 < last[1] / max(last[0], 1e-30) < 1.5:
            return True
    return False
