"""Labels that training and evaluations have in different ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import LossKind, Mode
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.setup.given import facts_of, kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["differs_in_evaluations"]

_LEAST_STEPS, _LEAST_EVALUATIONS = 10, 2
_SCALED = 10.0
"""Ratio of the largest labels from which they are another unit, not the luck of few rows."""
_ONE_SIZE = 3.0
"""Ratio of predictions up to which those of evaluations are in the unit of those of training."""
_FAR = 0.5
"""Share of the range that labels have in evaluations, beyond which those of training are none of them."""


def differs_in_evaluations(run: RunView, name: str) -> str:
    """What labels a loss is given in training and what in evaluations, where that cannot be; else ``""``.

    Parameters
    ----------
    run
        What was recorded.
    name
        Class of the loss: ``"CrossEntropyLoss"``.
    """
    told = _elsewhere(run, name)
    if told or is_game(run):
        return told
    return _in_other_units(run, name) or _only_one(run, name) or _alone(run, name)


class _Ends(NamedTuple):
    """Least and largest label of each batch."""

    least: NDArray[np.float64]
    largest: NDArray[np.float64]


def _ends(run: RunView, name: str) -> tuple[_Ends, _Ends] | None:
    """Those of training, and of evaluations; None before there are enough of either."""
    found = []
    for mode, needed in ((Mode.TRAIN, _LEAST_STEPS), (Mode.EVAL, _LEAST_EVALUATIONS)):
        ends = _Ends(*(facts_of(run, name, f"target_{end}", mode) for end in ("min", "max")))
        if min(len(ends.least), len(ends.largest)) < needed:
            return None
        found.append(ends)
    return found[0], found[1]


def _only_one(run: RunView, name: str) -> str:
    """Labels that are one and the same throughout training, and several in every evaluation."""
    if (ends := _ends(run, name)) is None:
        return ""
    trained, held = ends
    least, most = float(trained.least[0]), float(trained.largest[0])
    kind = kind_of(run, name)
    counts = least != 0 or kind.of_yes_or_no or (kind.of_classes and _as_many(run, name))
    alone = least == most and all((one == least).all() for one in trained)
    if not (alone and counts) or not (held.least < held.largest).all():
        return ""
    return (
        f"one label only, {least:.3g}, in {len(trained.least)} saved steps, and labels from "
        f"{held.least[-1]:.3g} to {held.largest[-1]:.3g} in evaluations"
    )


def _as_many(run: RunView, name: str) -> bool:
    """Whether classes are as many in evaluations: to be right first among others is another question."""
    classes = [facts_of(run, name, "classes", mode) for mode in (Mode.TRAIN, Mode.EVAL)]
    return all(len(one) for one in classes) and float(classes[0][-1]) == float(classes[1][-1])


def _elsewhere(run: RunView, name: str) -> str:
    """Labels whose least and largest are always the same, and others in every evaluation.

    Both are shifted by as much, or so many times as large: a class that is missing on one side is neither.
    """
    if (ends := _ends(run, name)) is None:
        return ""
    if any(not np.isfinite(one).all() or np.ptp(one) > 0 for side in ends for one in side):
        return ""
    (low, high), (low_held, high_held) = ((float(side.least[-1]), float(side.largest[-1])) for side in ends)
    shifted = low - low_held == high - high_held != 0
    both = low == low_held == 0 and min(high, high_held) > 0
    scaled = both and max(high / high_held, high_held / high) >= _SCALED
    if not (shifted or scaled):
        return ""
    return f"labels from {low:.3g} to {high:.3g}, and from {low_held:.3g} to {high_held:.3g} in evaluations"


def _alone(run: RunView, name: str) -> str:
    """A number that is the largest (or least) of every batch of training, and far from all of evaluations."""
    if kind_of(run, name) is not LossKind.DISTANCE or (ends := _ends(run, name)) is None:
        return ""
    trained, held = ends
    lowest, highest = float(held.least.min()), float(held.largest.max())
    far = _FAR * (highest - lowest)
    low, high = float(trained.least[-1]), float(trained.largest[-1])
    if far > 0 and np.ptp(trained.largest) == 0 < np.ptp(trained.least) and high - highest > far:
        number = high
    elif far > 0 and np.ptp(trained.least) == 0 < np.ptp(trained.largest) and lowest - low > far:
        number = low
    else:
        return ""
    return (
        f"labels of {number:.3g} in each of {len(trained.least)} saved steps, and of {lowest:.3g} to "
        f"{highest:.3g} in evaluations: it may stand in for unknown ones"
    )


def _in_other_units(run: RunView, name: str) -> str:
    """Numbers that are many times as large on one side, while predictions are of one size on both.

    Where predictions are turned back for evaluations as the numbers are, both are in other units.
    """
    if kind_of(run, name) is not LossKind.DISTANCE:
        return ""
    trained, held = (facts_of(run, name, "target_size", mode) for mode in (Mode.TRAIN, Mode.EVAL))
    told, told_held = (facts_of(run, name, "prediction_size", mode) for mode in (Mode.TRAIN, Mode.EVAL))
    if min(len(trained), len(told)) < _LEAST_STEPS or min(len(held), len(told_held)) < _LEAST_EVALUATIONS:
        return ""
    if not all(np.isfinite(one).all() and (one > 0).all() for one in (trained, held)):
        return ""
    apart = max(float(trained.min() / held.max()), float(held.min() / trained.max()))
    predictions = float(told_held[-1]) / max(float(np.median(told[-_LEAST_STEPS:])), 1e-12)
    if apart < _SCALED or not 1.0 / _ONE_SIZE < predictions < _ONE_SIZE:
        return ""
    return f"labels of a size of {np.median(trained):.3g}, and of {np.median(held):.3g} in evaluations"
