"""Labels that have nothing to do with the predictions: shuffled against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.given import LossRule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.given import Given
    from tdbg_lab.rules.view import RunView

__all__ = ["UnrelatedLabels"]


@rule("unrelated_labels", title="Labels unrelated to predictions")
@dataclass(frozen=True, kw_only=True)
class UnrelatedLabels(LossRule):
    """After many steps predictions are right no more often than by chance, though the weights move.

    Labels that were shuffled against the inputs look like this. So does a model that cannot learn at all:
    findings on dead layers, gradients and the learning rate come first.
    """

    patience: int = 20
    """Saved steps over which predictions are compared with chance."""
    least_steps: int = 150
    """Optimizer steps before it is judged."""
    calm: int = 100
    """Checked steps in a row, better than chance, that end a finding: luck comes and goes."""
    z: float = 2.0
    """Standard errors above chance from which predictions count as better than chance."""

    _ADVICE: ClassVar = (
        "Check that inputs and labels are shuffled together, and come from the same rows.",
        "Look at some samples with their labels.",
        "Try to fit one batch: if that works, the labels are at fault, not the model.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("least_steps", at_least=0)
        self.require("z", at_least=0)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was seen at this step."""
        if step < self.least_steps or run.open:
            return None
        for name, given in self.given(run).items():
            told = _by_classes(given, self.z) or _by_numbers(given, self.z)
            if not told or not _moving(run):
                continue
            what, chance = told
            return self.finding(
                step,
                f"After {step} steps the predictions given to {name} are right no more often than by chance "
                f"({100 * what:.1f} % against {100 * chance:.1f} %): labels may be shuffled against inputs.",
                tensor=f"loss/{name}",
                evidence={
                    "right_percent": round(100 * what, 2),
                    "chance_percent": round(100 * chance, 2),
                    "saved_steps_count": len(given),
                },
                advice=self._ADVICE,
                view=ViewRef("scalars", {"tensors": [f"loss/{name}"]}),
            )
        return None


def _by_classes(given: list[Given], z: float) -> tuple[float, float] | None:
    """Share of right predictions and of the commonest label, when the first is not above the second."""
    hits = np.array([one.number("hits") for one in given])
    chance = np.array([one.number("majority") for one in given])
    samples = np.array([one.number("samples") for one in given])
    if not np.isfinite(hits).all() or not np.isfinite(chance).all():
        return None
    labels = np.array([one.number("labels", 2.0) for one in given])
    if labels.mean() < 2:
        return None
    right, common = float(hits.mean()), float(chance.mean())
    error = float(np.sqrt(max(right * (1 - right), 1e-4) / samples.sum()))
    return (right, common) if right < common + z * error and right < 0.9 else None


def _by_numbers(given: list[Given], z: float) -> tuple[float, float] | None:
    """The same for the correlation of numbers."""
    found = np.array([one.number("correlation") for one in given])
    samples = np.array([one.number("samples") for one in given])
    if not np.isfinite(found).all():
        return None
    error = 1.0 / float(np.sqrt(max(4.0, samples.sum())))
    mean = float(found.mean())
    return (max(mean, 0.0), 0.0) if mean < z * error else None


def _moving(run: RunView) -> bool:
    """Whether the weights still move: where update ratios are known, by them."""
    ratios = [
        values[-1]
        for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/update_ratio/.*weight$")
        if len(values := run.scalars(key.name).values)
    ]
    return not ratios or float(np.nanmedian(ratios)) > 1e-5
