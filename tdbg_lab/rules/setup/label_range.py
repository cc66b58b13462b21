"""Labels outside of what the loss or the output can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, LossKind, OutputEnd, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.given import LossRule, kind_of, loss_tensor, spoken
from tdbg_lab.rules.setup.held_range import differs_in_evaluations
from tdbg_lab.rules.setup.rounds import is_boosted
from tdbg_lab.rules.setup.stand_ins import is_stand_in, stand_in_among

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.given import Given
    from tdbg_lab.rules.view import RunView

__all__ = ["LabelRange"]

_BYTE = 255
_ROUNDING = 1e-3
"""Relative error that float32 sums may have."""
_BOUNDS = {
    OutputEnd.SIGMOID: (0.0, 1.0, "the output of a sigmoid"),
    OutputEnd.TANH: (-1.0, 1.0, "the output of a tanh"),
    OutputEnd.RELU: (0.0, float("inf"), "the output of a ReLU"),
}
_OF_COUNTS = "PoissonNLLLoss"
_NEAR_ZERO = 0.01
"""Size of the first outputs over that of the labels below which they know nothing of it: a bias that begins
at the mean of the labels makes them as large."""
_AT_BOUND = 0.02
"""How near to its bound the output of a sigmoid or tanh counts as there."""
_BEYOND = 0.1
"""Share of the labels' range beyond the end of an output from which that leaves much untold."""


@rule("label_range", title="Labels out of range")
@dataclass(frozen=True, kw_only=True)
class LabelRange(LossRule):
    """Labels are outside of what the loss allows, or of what the output can reach.

    Class numbers beyond the outputs, binary labels outside 0 to 1, labels of 0 and 1 where a loss expects
    signs (``SoftMarginLoss``, ``HingeEmbeddingLoss``, ``CosineEmbeddingLoss``, ``MarginRankingLoss``),
    counts below 0, labels that are not finite, all labels ignored, or an output that ends in a sigmoid, tanh
    or ReLU while labels lie far outside its range.

    Of a loss of one's own it is not known what it allows. Masks of 0 and 255 are bytes that were not divided
    by 255. And labels that evaluations have in another range are not made as those of training are: they are
    numbered from another number on, or so many times as large, or numbers in other units. Nor are labels
    that are all the same in training, and several in evaluations; zeros for numbers are let be, which stand
    in for labels that there are not. Numbers of hundreds, where outputs begin near zero, are raw.
    """

    reach: float = 1.5
    """For bounded outputs: labels beyond this many times the bound cannot be reached."""
    unscaled: float = 100.0
    """Size of numbers to tell, where outputs begin near zero, from which they are raw: by steps of a rate of
    0.001, as Adam makes them whatever the gradient is, a bias takes 100,000 of them to get there."""
    patience_bound: int = 10
    """Saved steps in a row at which outputs must be as if bounded: a few may be so by chance."""

    explains: ClassVar[tuple[str, ...]] = (
        *NOT_LEARNING,
        *(
            "exploding_tensor",
            "wrong_output",
            "constant_output",
            "saturated_activation",
            "vanishing_gradient",
        ),
    )
    _ADVICE: ClassVar = (
        "Check how labels are made: classes from 0 to the number of outputs less 1, binary labels 0 or 1.",
        "Standardise numbers to tell (mean 0, standard deviation 1), and turn predictions back afterwards.",
        "Scale the labels into the range of the output, or remove the bounded activation at its end.",
        "Look at a batch of labels: handle.record('labels', y).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("reach", "unscaled", above=0)
        self.require("patience_bound", at_least=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was seen at this step, or the labels of boosted trees."""
        if is_boosted(run):
            return self._of_trees(step, run)
        for name, given in self.given(run).items():
            seen, texts = given, [self._judge(one) for one in given]
            if not all(texts) and self._unreachable(given[-1]):
                seen = self.given(run, last=self.patience_bound).get(name, [])
                texts = [self._unreachable(one) for one in seen]
            if not texts or not all(texts):
                seen, texts = given, [differs_in_evaluations(run, name) or self._unscaled(run, name)]
            if not texts or not all(texts):
                continue
            return self.finding(
                step,
                f"{spoken(name)} is given {texts[-1]}.",
                severity=Severity.WARNING,
                tensor=loss_tensor(run, name),
                evidence={
                    "label_least": seen[-1].number("target_min"),
                    "label_largest": seen[-1].number("target_max"),
                    "saved_steps_count": len(seen),
                },
                advice=self._ADVICE,
                view=ViewRef("scalars", {"tensors": [loss_tensor(run, name)]}),
                step_first=seen[0].step,
            )
        return None

    def not_applicable(self, run: RunView) -> str:
        """Without a loss that is watched, and without labels of boosted trees."""
        return "" if is_boosted(run) else super().not_applicable(run)

    def needs(self) -> Needs:
        """Facts about losses; labels of boosted trees."""
        return Needs(kinds=(Kind.CHECK, Kind.CUSTOM), regex="^(check/loss/|labels$)", raw=True)

    def _of_trees(self, step: int, run: RunView) -> Finding | None:
        """Numbers among the labels of the training rows that stand in for unknown ones."""
        if run.active is not None:
            return run.active
        labels = run.raw("labels")
        if labels is None or labels.ndim != 1 or not len(labels) or labels.dtype.kind not in "fiu":
            return None
        number = stand_in_among(labels)
        if number is None:
            return None
        share = float((labels == number).mean())
        return self.finding(
            step,
            f"{100 * share:.1f} % of the labels are {number:g}, far from all others: it stands in for labels "
            "that are not known.",
            severity=Severity.WARNING,
            tensor="labels",
            evidence={"label": number, "share_percent": round(100 * share, 2), "rows_count": len(labels)},
            advice=("Leave out the rows whose label is not known.", *self._ADVICE[:1]),
            view=ViewRef("statistics", {"tensors": ["labels"], "statistic": "min"}),
        )

    def _judge(self, one: Given) -> str:
        low, high, broken = (one.number(f"target_{what}") for what in ("min", "max", "broken"))
        if broken > 0:
            return f"{broken:.0f} labels that are not finite"
        if one.number("ignored", 0.0) >= 1:
            return "no label that counts: all of them are ignored"
        if one.kind.of_yes_or_no and (low < 0 or high > 1):
            return f"labels from {low:.3g} to {high:.3g}, where it expects 0 to 1"
        if one.number("sign_zeros", 0.0) > 0 and one.number("sign_min") >= 0:
            return "labels of 0 and 1, where it expects -1 and 1"
        if one.kind in (LossKind.DISTANCE, LossKind.OTHER) and is_stand_in(low, high):
            return f"labels of {low:g} beside others of at most {high:.3g}: it stands in for unknown ones"
        if _is_of_counts(one) and low < 0:
            return f"labels down to {low:.3g}, where it expects counts"
        classes = one.number("classes", 0.0) if one.kind.of_classes else 0.0
        counted = classes > 1 and one.number("ignored", 1.0) == 0
        if counted and not 0 <= low <= high < classes:
            return f"classes from {low:.0f} to {high:.0f}, where its {classes:.0f} outputs count from 0"
        if one.kind is LossKind.DISTANCE and one.end in _BOUNDS and _is_beyond_end(one):
            return f"labels from {low:.3g} to {high:.3g}, which {_BOUNDS[one.end][2]} cannot reach"
        if _is_mask_of_bytes(one):
            return "masks of 0 and 255: they are bytes, to be divided by 255"
        return ""

    def _unscaled(self, run: RunView, name: str) -> str:
        """Numbers so large that the first outputs are nothing beside them, throughout."""
        told, wanted = (run.scalars(f"check/loss/{name}/{whose}_size") for whose in ("prediction", "target"))
        if kind_of(run, name) is not LossKind.DISTANCE or is_game(run) or not len(told.values):
            return ""
        near_zero = told.values[0] < _NEAR_ZERO * wanted.values[0] if len(wanted.values) else False
        if not near_zero or not (wanted.values > self.unscaled).all():
            return ""
        return (
            f"labels of a size of {wanted.values[-1]:.3g}, where outputs began at "
            f"{told.values[0]:.2g}: they are not scaled"
        )

    def _unreachable(self, one: Given) -> str:
        """Whether a saturated sigmoid or tanh, or a ReLU, stands before labels that it cannot reach."""
        counts = _is_of_counts(one)
        if one.kind is not LossKind.DISTANCE and not counts:
            return ""
        least, largest, low, high = (
            one.number(f"{whose}_{end}") for whose in ("target", "prediction") for end in ("min", "max")
        )
        if counts:  # outputs are logarithms, as a rule, of which the largest is 1 behind either
            largest = float(np.log(max(largest, 1.0)))
        elif low == 0 < high and -least > _BEYOND * (largest - least):
            return f"labels from {least:.3g} to {largest:.3g}, which an output behind a ReLU cannot reach"
        if low > 1 - _AT_BOUND and high <= 1 and self._is_beyond(one.number("target_size"), counts=counts):
            return (
                f"labels of a size of {one.number('target_size'):.3g}, and outputs that are held at 1: what "
                "an output behind a sigmoid or tanh cannot reach"
            )
        for bottom, top, name in ((0.0, 1.0, "a sigmoid"), (-1.0, 1.0, "a tanh")):
            within = low >= bottom and high <= top and high - low > 0.3 * (top - bottom)
            saturated = high > top - _AT_BOUND or low < bottom + _AT_BOUND
            if within and saturated and (largest > self.reach * top or least < self.reach * bottom - 0.5):
                most = one.number("target_max")
                return f"labels from {least:.3g} to {most:.3g}, which an output behind {name} cannot reach"
        return ""

    def _is_beyond(self, size: float, *, counts: bool) -> bool:
        """Whether labels of this size are out of reach of 1: of their logarithm, if they are counts."""
        return (float(np.log(max(size, 1.0))) if counts else size) > self.reach


def _is_beyond_end(one: Given) -> bool:
    """Whether much of the labels' range lies beyond what the function at the end gives."""
    bottom, top, _ = _BOUNDS[one.end]
    least, largest = one.number("target_min"), one.number("target_max")
    beyond = max(0.0, bottom - least) + max(0.0, largest - top)
    return beyond > _BEYOND * (largest - least)


def _is_of_counts(one: Given) -> bool:
    return one.name.partition(":")[0] == _OF_COUNTS


def _is_mask_of_bytes(one: Given) -> bool:
    """Whether all labels are 0 or 255: what their zeros leave is all of the largest value."""
    low, high, zeros, size = (one.number(f"target_{what}") for what in ("min", "max", "zeros", "size"))
    whole = low == 0 and high == _BYTE and 0 < zeros < 1 and "correlation" in one.facts  # no class numbers
    return whole and abs(size / (_BYTE * (1 - zeros) ** 0.5) - 1) < _ROUNDING
