"""Labels that training and evaluations have in different ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import LossKind, Mode
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.setup.given import facts_of, kind_of

if TYPE_CHECKING:
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
    if is_game(run):
        return ""
    ways = (_elsewhere, _in_other_units, _only_one, _alone)
    return next((told for way in ways if (told := way(run, name))), "")


def _only_one(run: RunView, name: str) -> str:
    """Labels that are one and the same throughout training, and several in every evaluation."""
    ends = [facts_of(run, name, f"target_{end}") for end in ("min", "max")]
    held = [facts_of(run, name, f"target_{end}", Mode.EVAL) for end in ("min", "max")]
    if any(len(one) < _LEAST_STEPS for one in ends) or any(len(one) < _LEAST_EVALUATIONS for one in held):
        return ""
    least, most = (float(one[0]) for one in ends)
    kind = kind_of(run, name)
    counts = least != 0 or kind.of_yes_or_no or (kind.of_classes and _as_many(run, name))
    alone = least == most and all((one == least).all() for one in ends)
    if not (alone and counts) or not (held[0] < held[1]).all():
        return ""
    return (
        f"one label only, {least:.3g}, in {len(ends[0])} saved steps, and labels from {held[0][-1]:.3g} to "
        f"{held[1][-1]:.3g} in evaluations"
    )


def _as_many(run: RunView, name: str) -> bool:
    """Whether classes are as many in evaluations: to be right first among others is another question."""
    classes = [facts_of(run, name, "classes", mode) for mode in (Mode.TRAIN, Mode.EVAL)]
    return all(len(one) for one in classes) and float(classes[0][-1]) == float(classes[1][-1])


def _elsewhere(run: RunView, name: str) -> str:
    """Labels whose least and largest are always the same, and others in every evaluation.

    Both are shifted by as much, or so many times as large: a class that is missing on one side is neither.
    """
    found = []
    for mode, least in ((Mode.TRAIN, _LEAST_STEPS), (Mode.EVAL, _LEAST_EVALUATIONS)):
        ends = [facts_of(run, name, f"target_{end}", mode) for end in ("min", "max")]
        if any(len(one) < least or not np.isfinite(one).all() or np.ptp(one) > 0 for one in ends):
            return ""
        found.append((float(ends[0][-1]), float(ends[1][-1])))
    (low, high), (low_held, high_held) = found
    shifted = low - low_held == high - high_held != 0
    both = low == low_held == 0 and min(high, high_held) > 0
    scaled = both and max(high / high_held, high_held / high) >= _SCALED
    if not (shifted or scaled):
        return ""
    return f"labels from {low:.3g} to {high:.3g}, and from {low_held:.3g} to {high_held:.3g} in evaluations"


def _alone(run: RunView, name: str) -> str:
    """A number that is the largest (or least) of every batch of training, and far from all of evaluations."""
    if kind_of(run, name) is not LossKind.DISTANCE:
        return ""
    trained = [facts_of(run, name, f"target_{end}") for end in ("min", "max")]
    held = [facts_of(run, name, f"target_{end}", Mode.EVAL) for end in ("min", "max")]
    if any(len(one) < _LEAST_STEPS for one in trained) or any(len(one) < _LEAST_EVALUATIONS for one in held):
        return ""
    far = _FAR * float(held[1].max() - held[0].min())
    low, high = float(trained[0][-1]), float(trained[1][-1])
    beyond = {
        high: np.ptp(trained[1]) == 0 < np.ptp(trained[0]) and high - float(held[1].max()) > far,
        low: np.ptp(trained[0]) == 0 < np.ptp(trained[1]) and float(held[0].min()) - low > far,
    }
    number = next((one for one, found in beyond.items() if found and far > 0), None)
    if number is None:
        return ""
    return (
        f"labels of {number:.3g} in each of {len(trained[0])} saved steps, and of {held[0].min():.3g} to "
        f"{held[1].max():.3g} in evaluations: it may stand in for unknown ones"
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
