"""Numbers that are told on the rows of training, and on rows held out by chance alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import LossKind, Mode
from tdbg_lab.rules.setup.given import facts_of, kind_of

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["HeldNumbers", "held_numbers"]

_EVALUATIONS, _LEAST_ROWS = 3, 100
_MANY = 5
"""Evaluations that are needed where the training rows are not known by heart, and none of which was better
than `_FELL` of the first."""
_FELL = 0.95
_Z = 1.64
"""Standard errors that leave one chance in twenty."""
_TOLD, _KNOWN = 0.15, 0.4
"""Correlation from which rows held out are told, as of boosted trees, and those of training are known."""


class HeldNumbers(NamedTuple):
    """Correlations of predictions and labels."""

    trained: float
    held: float
    rows: int
    """Of one evaluation."""

    @property
    def sentence(self) -> str:
        """What is told of either."""
        return (
            f"predictions go with the labels of training rows (correlation {self.trained:.2f}), and not with "
            f"those of {self.rows} rows of the evaluation ({self.held:.2f})"
        )

    @property
    def evidence(self) -> dict[str, float]:
        """The numbers behind it."""
        return {
            "correlation_training": round(self.trained, 4),
            "correlation_evaluation": round(self.held, 4),
            "rows_count": self.rows,
        }


def held_numbers(run: RunView, name: str, last: int) -> HeldNumbers | None:
    """How far numbers are told on both, if those held out are told by chance; else None.

    Parameters
    ----------
    run
        What was recorded.
    name
        Class of a loss on numbers that evaluations called, too.
    last
        Saved steps of the training that are averaged.
    """
    if kind_of(run, name) is not LossKind.DISTANCE:
        return None
    trained = facts_of(run, name, "correlation", Mode.TRAIN)[-last:]
    if len(trained) < last:
        return None
    known = float(trained.mean()) >= _KNOWN
    evaluations = _EVALUATIONS if known else _MANY
    held, rows, least, most = (
        facts_of(run, name, fact, Mode.EVAL)[-evaluations:]
        for fact in ("correlation", "samples", "target_min", "target_max")
    )
    if not len(held) == len(rows) == evaluations or not (least < most).all():
        return None
    error = _Z / float(np.sqrt(rows.min()))
    level = float(held.max()) if known else max(float(held.mean()), float(held[-1]))
    if rows.min() < _LEAST_ROWS or not (level <= error and level + error <= _TOLD):
        return None
    if not known and not (float(trained.mean()) > 0 and _never_fell(run, name)):
        return None
    return HeldNumbers(float(trained.mean()), float(held.mean()), int(rows.min()))


def _never_fell(run: RunView, name: str) -> bool:
    """Whether the loss of the evaluations is where it began, or higher."""
    losses = run.scalars(f"loss/{name}", Mode.EVAL).values
    return len(losses) >= _MANY and bool(losses.min() >= _FELL * losses[0] > 0)
