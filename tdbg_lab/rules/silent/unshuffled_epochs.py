"""Data that are not shuffled: in the same order each epoch, or sorted by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.batches import BATCH, BatchRule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["UnshuffledEpochs"]

_MAJORITY = "^check/loss/[^/:]+/majority$"
_NUMBERS = "^check/loss/[^/:]+/correlation$"
_APART = 0.75
"""Share of pairs of batches whose ranges have nothing in common from which labels are sorted: two sorts of
batches in turn, real and made ones, are 4/7 at most."""
_LEAST_SAMPLES = 8
"""Labels of a batch from which its range holds the middle of all labels, but for one chance in a hundred."""
_LEAST_OF_A_CLASS = 4
"""Labels of a batch from which it is no chance that all are of one class: a single one always is."""


@rule("unshuffled_epochs", title="Same order each epoch")
@dataclass(frozen=True, kw_only=True)
class UnshuffledEpochs(BatchRule):
    """The same batches come in the same order each epoch: the data are not shuffled.

    A loader that does not shuffle does that, and a sampler for several processes whose epoch is never set. Of
    less than `batches` an epoch it is worth knowing only. Where data must stay in order, mute the rule.

    Data are sorted by class where batches are of one class each, and of another one from batch to batch: what
    was learnt of one is forgotten with the next. They are sorted by number where the labels of batches lie in
    ranges that hardly overlap.
    """

    batches: int = 8
    """Batches of an epoch from which the same order is a warning; so many must be of about one class each."""
    steps: int = 4
    """Steps in a row that must have the batch of an epoch before."""
    classes: int = 3
    """Different classes that such batches must have been of."""
    majority: float = 0.9
    """Share of the commonest label, median of the batches, from which they are of nearly one class."""

    _ADVICE: ClassVar = (
        "Give the DataLoader shuffle=True, or a sampler that shuffles.",
        "With a DistributedSampler call sampler.set_epoch(epoch) before each epoch.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("batches", "classes", "steps", at_least=2)
        self.require("majority", above=0, at_most=1)

    def not_applicable(self, run: RunView) -> str:
        """Without a digest of the batches, and without labels."""
        return "" if run.tensors(Kind.CHECK, regex=_MAJORITY) else super().not_applicable(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at the labels of the batches, and for the period of their digests."""
        if len(run.ranks) > 1:  # what several ranks wrote is averaged
            return None
        return self._sorted(step, run) or self._sorted_numbers(step, run) or self._in_order(step, run)

    def _sorted(self, step: int, run: RunView) -> Finding | None:
        """Batches of nearly one class each, of several classes in turn."""
        for key in run.tensors(Kind.CHECK, regex=_MAJORITY):
            base = key.name.removesuffix("majority")
            most, least, largest = (
                run.scalars(base + fact).values for fact in ("majority", "target_min", "target_max")
            )
            if not len(most) == len(least) == len(largest) or len(most) < self.batches:
                continue
            samples = run.scalars(base + "samples").values[-self.batches :]
            if len(samples) and samples.min() < _LEAST_OF_A_CLASS:
                continue
            pure = least[-2 * self.batches :][(least == largest)[-2 * self.batches :]]
            if float(np.median(most[-self.batches :])) < self.majority or len(np.unique(pure)) < self.classes:
                continue
            return self.finding(
                step,
                f"The last {self.batches} recorded batches are of nearly one class each, and of another one "
                f"now and then ({len(np.unique(pure))} classes so far): the data are sorted by class.",
                severity=Severity.WARNING,
                tensor=base.removeprefix("check/").rstrip("/"),
                evidence={
                    "majority_share": float(np.median(most[-self.batches :])),
                    "classes_count": len(np.unique(pure)),
                },
                advice=self._ADVICE,
                view=ViewRef("scalars", {"tensors": [key.name]}),
            )
        return None

    def _sorted_numbers(self, step: int, run: RunView) -> Finding | None:
        """Batches whose labels lie in ranges apart from one another."""
        for key in run.tensors(Kind.CHECK, regex=_NUMBERS):
            base = key.name.removesuffix("correlation")
            least, largest, samples = (
                run.scalars(base + fact).values[-self.batches :]
                for fact in ("target_min", "target_max", "samples")
            )
            if not len(least) == len(largest) == len(samples) == self.batches:
                continue
            if samples.min() < _LEAST_SAMPLES or (least < largest).mean() < 0.5:
                continue
            apart = _share_apart(least, largest)
            if apart < _APART:
                continue
            return self.finding(
                step,
                f"The labels of the last {self.batches} recorded batches lie in ranges apart "
                f"({100 * apart:.0f} % of the pairs do not overlap): the data are sorted by label.",
                severity=Severity.WARNING,
                tensor=base.removeprefix("check/").rstrip("/"),
                evidence={"pairs_apart_percent": round(100 * apart, 1), "batches_count": self.batches},
                advice=self._ADVICE,
                view=ViewRef("scalars", {"tensors": [f"{base}target_min", f"{base}target_max"]}),
            )
        return None

    def _in_order(self, step: int, run: RunView) -> Finding | None:
        period = _period(run.scalars(BATCH).values, self.batches, self.steps)
        if not period:
            return None
        return self.finding(
            step,
            f"Batches come in the order of {period} batches before: data are not shuffled between epochs.",
            severity=Severity.WARNING if period >= self.batches else Severity.NOTICE,
            evidence={"batches_per_epoch_count": period},
            advice=self._ADVICE,
            view=ViewRef("scalars", {}),
        )


def _share_apart(least: NDArray[np.float64], largest: NDArray[np.float64]) -> float:
    """Share of the pairs of ranges that have nothing in common."""
    apart = largest[:, None] < least[None, :]
    return 2.0 * float(apart.sum()) / (len(least) * (len(least) - 1))


def _period(values: NDArray[np.float64], long: int, few: int) -> int:
    """Batches after which they come again in the same order; 0 when they do not.

    Of `long` and more, `few` in a row are no luck; of less, each must have come again, and `long` of them.
    """
    if len(values) < 4:
        return 0
    before = np.flatnonzero(values[:-1] == values[-1])
    if not len(before):
        return 0
    period = len(values) - 1 - int(before[-1])
    length = few if period >= long else long
    if period < 2 or len(values) < length + period:
        return 0
    same = np.array_equal(values[-length:], values[-length - period : len(values) - period])
    return period if same and len(np.unique(values[-period:])) == period else 0
