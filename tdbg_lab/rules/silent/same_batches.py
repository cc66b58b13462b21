"""Batches that come again: within a rank, on several ranks, or in the same order each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, noted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["SameBatches", "UnshuffledEpochs"]

_BATCH = "check/batch"
_MAJORITY = "^check/loss/[^/]+/majority$"
_NUMBERS = "^check/loss/[^/]+/correlation$"
_APART = 0.75
"""Share of pairs of batches whose ranges have nothing in common from which labels are sorted: two sorts of
batches in turn, real and made ones, are 4/7 at most."""
_LEAST_SAMPLES = 8
"""Labels of a batch from which its range holds the middle of all labels, but for one chance in a hundred."""
_WINDOW = 128
"""Last steps in which batches that come again are looked for: three batches of up to 32 workers."""
_FEW = 4
"""Batches at most that are few: whole data come in that many, but then they are shuffled or taken at once."""
_ROUNDS = 3
"""Times that few batches must have come in the same order, nothing else between."""
_MANY = 8
"""Times in a row from which three batches are needed, each as often: people fit single batches on purpose,
and L-BFGS looks at one several times."""


@dataclass(frozen=True, kw_only=True)
class _BatchRule(LoopRule):
    def not_applicable(self, run: RunView) -> str:
        """Without a digest of the batches."""
        if why := super().not_applicable(run):
            return why
        why = "No digests of batches were recorded so far: they are made of inputs in CPU memory."
        return "" if noted(run, "batch") else why


@rule("same_batches", title="Same batches twice")
@dataclass(frozen=True, kw_only=True)
class SameBatches(_BatchRule):
    """Several ranks train on the same batches, or each batch comes several times in a row.

    Workers of a data loader that all read the same part of the data do that, and ranks without a
    distributed sampler or with the same seed. So is a handful of batches that come round and round, and none
    besides: an iterator that is made anew every few steps. Training on one batch, or on all data at once, is
    not meant.
    """

    steps: int = 4
    """Steps in a row at which ranks have the same batch."""
    pairs: int = 4
    """Times that a batch comes again right after itself before it is reported; two batches at least."""

    _ADVICE: ClassVar = (
        "Use a DistributedSampler (with sampler.set_epoch), or split an iterable dataset by rank.",
        "Split an iterable dataset by torch.utils.data.get_worker_info() in each worker.",
        "Give each worker and rank its own seed.",
    )

    def needs(self) -> Needs:
        """Facts of each rank by itself."""
        return Needs(kinds=(Kind.CHECK, Kind.LOSS), steps=max(8, self.steps), per_rank=True)

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("steps", "pairs", at_least=2)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare ranks, else neighbours."""
        return self._across(step, run) if len(run.ranks) > 1 else self._within(step, run)

    def _across(self, step: int, run: RunView) -> Finding | None:
        digests: dict[int, dict[int, float]] = {}
        for rank, frames in run.rank_frames(Kind.CHECK, max(8, self.steps)).items():
            for frame in frames:
                row = frame.get(_BATCH)
                if row is not None:
                    digests.setdefault(frame.step, {})[rank] = row.value
        several = [list(found.values()) for _, found in sorted(digests.items()) if len(found) > 1]
        last = several[-self.steps :]
        if len(last) < self.steps or any(len(set(found)) > 1 for found in last):
            return None
        if len({found[0] for found in last}) == 1:  # one batch for ever
            return None
        return self.finding(
            step,
            f"{len(last[-1])} ranks trained on the same batches in the last {self.steps} steps.",
            evidence={"ranks_count": len(last[-1]), "steps_count": self.steps},
            advice=self._ADVICE,
            view=ViewRef("scalars", {}),
            step_first=max(0, step - self.steps + 1),
        )

    def _stuck(self, step: int, values: NDArray[np.float64]) -> Finding | None:
        """Batches that varied, and then are one batch for ever."""
        last = values[-self.steps :]
        if len(values) < 3 * self.steps or (last != last[0]).any():
            return None
        before = values[: -self.steps]
        if len(np.unique(before)) < min(self.steps, len(before)):
            return None
        return self.finding(
            step,
            f"The same batch came at the last {self.steps} steps; before, batches varied.",
            evidence={"steps_count": self.steps, "batches_before_count": len(np.unique(before))},
            advice=(
                "Look for an iterator that gives its last batch again when it is used up.",
                *self._ADVICE,
            ),
            view=ViewRef("scalars", {}),
            step_first=max(0, step - self.steps + 1),
        )

    def _within(self, step: int, run: RunView) -> Finding | None:
        values = run.scalars(_BATCH).values
        return self._again(step, values) or self._stuck(step, values) or self._few(step, values)

    def _few(self, step: int, values: NDArray[np.float64]) -> Finding | None:
        """Two to four batches in turn, `_ROUNDS` times."""
        count = _round_of(values[-_ROUNDS * _FEW :])
        if not count:
            return None
        return self.finding(
            step,
            f"{count} batches come again and again in the same order, and no others: training sees nothing "
            "else.",
            evidence={"batches_count": count, "rounds_count": _ROUNDS},
            advice=(
                "Look for an iterator made anew every few steps: iter(loader) belongs before the loop.",
                "If these are all data, shuffle them, or train on all of them at once.",
            ),
            view=ViewRef("scalars", {}),
            step_first=max(0, step - _ROUNDS * count + 1),
        )

    def _again(self, step: int, values: NDArray[np.float64]) -> Finding | None:
        """Each batch several times in a row."""
        last = values[-_WINDOW:]
        if len(last) < self.pairs + 2:
            return None
        begins = np.flatnonzero(np.r_[True, last[1:] != last[:-1]])
        lengths = np.diff(np.r_[begins, len(last)])
        if len(values) > len(last):
            lengths = lengths[1:]  # it is cut
        if len(lengths) < 2 or lengths.min() < 2 or (lengths - 1).sum() < self.pairs:
            return None
        times = float(np.median(lengths[:-1]))  # the last one goes on
        if times > _MANY and (len(lengths) < 3 or np.ptp(lengths[:-1]) > 0):
            return None
        return self.finding(
            step,
            f"Each batch comes {times:.0f} times in a row ({len(lengths)} batches seen).",
            evidence={"times_in_a_row_count": times, "batches_count": len(lengths)},
            advice=self._ADVICE[1:],
            view=ViewRef("scalars", {}),
        )


@rule("unshuffled_epochs", title="Same order each epoch")
@dataclass(frozen=True, kw_only=True)
class UnshuffledEpochs(_BatchRule):
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
        period = _period(run.scalars(_BATCH).values, self.batches, self.steps)
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


def _round_of(values: NDArray[np.float64]) -> int:
    """How many different batches come in turn at the end; 0 when they are not two to `_FEW` of them."""
    for count in range(2, _FEW + 1):
        last = values[-_ROUNDS * count :]
        if len(last) == _ROUNDS * count and np.array_equal(last[count:], last[:-count]):
            return count if len(np.unique(last)) == count else 0
    return 0


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
