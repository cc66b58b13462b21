"""Numbers that are told on the rows of training, and on rows held out by chance alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import LossKind, Mode
from tdbg_lab.rules.setup.given import kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["HeldNumbers", "held_numbers"]

_EVALUATIONS, _LEAST_ROWS = 3, 100
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
    trained = _facts(run, name, "correlation", Mode.TRAIN)[-last:]
    held, rows, least, most = (
        _facts(run, name, fact, Mode.EVAL)[-_EVALUATIONS:]
        for fact in ("correlation", "samples", "target_min", "target_max")
    )
    if len(trained) < last or not len(held) == len(rows) == _EVALUATIONS or not (least < most).all():
        return None
    error = _Z / float(np.sqrt(rows.min()))
    by_chance = float(held.max()) <= error and float(held.max()) + error <= _TOLD
    if rows.min() < _LEAST_ROWS or not by_chance or not float(trained.mean()) >= _KNOWN:
        return None
    return HeldNumbers(float(trained.mean()), float(held.mean()), int(rows.min()))


def _facts(run: RunView, name: str, fact: str, mode: Mode) -> NDArray[np.float64]:
    return run.scalars(f"check/loss/{name}/{fact}", mode).values
