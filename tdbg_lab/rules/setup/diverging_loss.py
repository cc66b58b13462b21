"""A loss that rises for good, or swings back and forth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.losses.evidence import targets_explain
from tdbg_lab.rules.losses.state import no_single_loss
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["DivergingLoss"]


@rule("diverging_loss", title="Loss diverges")
@dataclass(frozen=True, kw_only=True)
class DivergingLoss(Rule):
    """The training loss rose far above the best it had reached, and above where it began, and stays there.

    Spikes from which a training recovers are healthy (large language models have dozens), so a loss must
    stay up. So is the loss of a value function whose targets have grown as much. Runs with
    several models (players of a game) are not judged: their losses need not fall. A loss that falls far below
    zero, and on, diverges as well: its sign is turned, or what is to be large has no bound.
    """

    factor: float = 2.0
    """The loss must be this many times the level it began at."""
    bottomless: float = 1000.0
    """Loss below zero, as a multiple of where it began (or of one), from which it has no least value. A
    likelihood of continuous values falls below zero, too, by a few for each of them."""
    patience: int = 20
    """Steps in a row that it must stay up: the lowest of them counts."""
    warm_up: int = 20
    """Steps before it is judged."""

    explains: ClassVar[tuple[str, ...]] = ("loss_not_decreasing", "overfit", "overtraining")
    _ADVICE: ClassVar = (
        "Lower the learning rate by a factor of 3 to 10, or warm it up for longer.",
        "Clip gradients to a norm a little above the usual one.",
        "Go back to a checkpoint before the rise, and look at the batches there.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("factor", "bottomless", above=1)
        self.require("patience", at_least=3)

    def needs(self) -> Needs:
        """Losses."""
        return Needs(kinds=(Kind.LOSS, Kind.SCALAR))

    def not_applicable(self, run: RunView) -> str:
        """Without a loss, or with several."""
        return no_single_loss(run, "need not fall")

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the last steps with the first."""
        name = run.losses()[0]
        values = run.scalars(name).values
        if len(values) < self.warm_up + self.patience or not len(run.frame().rows(Kind.LOSS, Kind.SCALAR)):
            return None
        start, low = _level(values[: max(5, self.warm_up // 2)]), float(np.min(values[-self.patience :]))
        if (most := float(np.max(values[-self.patience :]))) < -self.bottomless * max(abs(start), 1.0):
            return self._bottomless(step, name, start, most)
        if not np.isfinite(low) or start <= 0 or low < self.factor * start:
            return None
        if targets_explain(run, name, low / start):
            return None
        return self.finding(
            step,
            f"{name} began at {start:.4g} and has been above {low:.4g} for {self.patience} steps.",
            severity=Severity.CRITICAL if low > 10 * self.factor * start else Severity.WARNING,
            tensor=name,
            evidence={"loss_at_start": start, "loss_least_of_late": low, "steps_count": self.patience},
            advice=self._ADVICE,
            fix={"setting": "learning_rate", "factor": 0.1},
            view=ViewRef("scalars", {"tensors": [name]}),
            step_first=max(0, step - self.patience + 1),
        )

    def _bottomless(self, step: int, name: str, start: float, most: float) -> Finding:
        """A loss that has no least value: what makes it smaller makes predictions worse."""
        return self.finding(
            step,
            f"{name} began at {start:.4g} and has been below {most:.4g} for {self.patience} steps: it falls "
            "without end, as an error does whose sign is turned.",
            severity=Severity.CRITICAL,
            tensor=name,
            evidence={"loss_at_start": start, "loss_largest_of_late": most, "steps_count": self.patience},
            advice=(
                "Check the sign of the loss: an error is made small, a gain is made large (maximize=True).",
                "A term that is to be made large needs a bound, such as a margin or a clipped weight.",
            ),
            view=ViewRef("scalars", {"tensors": [name]}),
            step_first=max(0, step - self.patience + 1),
        )


def _level(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(median(finite))
