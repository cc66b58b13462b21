"""Trainings that go on although nothing gets better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.losses.pairs import find_pair, missing_pair
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.trend import noise_of, trend_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.losses.pairs import LossPair
    from tdbg_lab.rules.view import RunView

__all__ = ["Overtraining"]


@rule("overtraining", title="Overtraining")
@dataclass(frozen=True, kw_only=True)
class Overtraining(Rule):
    """Neither the training loss nor the evaluation loss has become better for long: it could stop.

    This costs time and does no harm, so it is a notice. The evaluation loss must have been no better than
    its best, beyond its noise, for `patience` evaluations that are at least a third of the run, and the
    training loss must be flat as well.

    With `classic`, the condition of SageMaker Debugger to the letter: the training loss has not improved
    by more than `delta` for `patience_train` steps, and the evaluation loss not for
    `patience_validation` steps (AWS developer guide, Overtraining).
    """

    calm: int = 20
    """Checked steps without an answer that end a finding."""

    patience: int = 10
    """Evaluations without a better one."""
    min_share: float = 33.0
    """They must also be this share of all evaluations, percent."""
    regex: str | None = None
    """Names of the losses; None finds them."""
    classic: bool = False
    patience_train: int = 5
    """Classic: steps without a better training loss."""
    patience_validation: int = 10
    """Classic: steps without a better evaluation loss."""
    delta: float = 0.01
    """Classic: what a loss must fall by to be better, in the unit of the loss."""

    _ADVICE: ClassVar = (
        "Stop, and use the weights of the best evaluation; stop early next time.",
        "Lower the learning rate: both losses may fall again.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "patience_train", "patience_validation", at_least=1)
        self.require("min_share", at_least=0, at_most=100)
        self.require("delta", at_least=0)

    def needs(self) -> Needs:
        """A training loss and an evaluation loss."""
        return Needs(kinds=(Kind.LOSS, Kind.SCALAR, Kind.CUSTOM, Kind.CHECK), evaluations=True)

    def not_applicable(self, run: RunView) -> str:
        """No evaluation loss."""
        return missing_pair(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look how long ago both losses were at their best."""
        pair = find_pair(run, self.regex)
        if pair is None or not len(pair.train.steps) or not np.isfinite(pair.held.values).any():
            return None
        if run.active is not None and pair.held.steps[-1] <= run.active.step_last:
            return run.active  # no evaluation since
        if self.classic:
            flat = _since_best(pair.train.values, self.delta) >= self.patience_train
            held = _since_best(pair.held.values, self.delta) >= self.patience_validation
            return self._found(step, pair) if flat and held else None
        held_values = pair.held.values[np.isfinite(pair.held.values)]
        if len(held_values) <= self.patience:
            return None
        since = _since_best(held_values, 2.0 * noise_of(held_values))
        if since < max(self.patience, self.min_share / 100.0 * len(held_values)):
            return None
        if since == 0:
            return None
        recent = pair.train.steps >= pair.held.steps[-since - 1]
        trend = trend_of(pair.train.values[recent])
        if run.active is None and (trend is None or trend.fall_z >= 2.0):
            return None
        return self._found(step, pair)

    def _found(self, step: int, pair: LossPair) -> Finding:
        best = int(np.argmin(np.where(np.isfinite(pair.held.values), pair.held.values, np.inf)))
        return self.finding(
            step,
            f"{pair.eval_name} was best at step {pair.held.steps[best]}, {pair.held.values[best]:.4g}, "
            f"{len(pair.held.steps) - 1 - best} evaluations ago; {pair.train_name} does not fall any more.",
            severity=Severity.NOTICE,
            tensor=pair.eval_name,
            evidence={
                "evaluation_loss_best": float(pair.held.values[best]),
                "evaluation_loss_now": float(pair.held.values[-1]),
                "step_of_best": int(pair.held.steps[best]),
                "evaluations_since_best_count": len(pair.held.steps) - 1 - best,
            },
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": list(dict.fromkeys((pair.train_name, pair.eval_name)))}),
        )


def _since_best(values: NDArray[np.float64], delta: float) -> int:
    """Points since the last one that was better than the best before it by more than `delta`."""
    best, at = np.inf, 0
    for place, value in enumerate(values):
        if value < best - delta:
            best, at = value, place
    return len(values) - 1 - at
