"""Batches that come again: within a rank, or on several ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.losses.state import gathers
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.batches import BATCH, BatchRule
from tdbg_lab.rules.silent.loop import noted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["SameBatches"]

_WINDOW = 128
"""Last steps in which batches that come again are looked for: three batches of up to 32 workers."""
_FEW = 4
"""Batches at most that are few: whole data come in that many, but then they are shuffled or taken at once."""
_ROUNDS = 3
"""Times that few batches must have come in the same order, nothing else between."""
_MANY = 8
"""Times in a row from which three batches are needed, each as often: people fit single batches on purpose,
and L-BFGS looks at one several times."""


@rule("same_batches", title="Same batches twice")
@dataclass(frozen=True, kw_only=True)
class SameBatches(BatchRule):
    """Several ranks train on the same batches, or each batch comes several times in a row.

    Workers of a data loader that all read the same part of the data do that, and ranks without a
    distributed sampler or with the same seed. So is a handful of batches that come round and round, and none
    besides: an iterator that is made anew every few steps. Training on one batch, or on all data at once, is
    not meant, nor what a program has gathered itself, on which it trains several times before it goes on, nor
    ranks among which each layer is divided (tensor parallelism): they need the same batch.
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
        if len(run.ranks) > 1 and not noted(run, "split_layers"):
            return self._across(step, run)
        return self._within(step, run)

    def _across(self, step: int, run: RunView) -> Finding | None:
        digests: dict[int, dict[int, float]] = {}
        for rank, frames in run.rank_frames(Kind.CHECK, max(8, self.steps)).items():
            for frame in frames:
                row = frame.get(BATCH)
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
        if gathers(run):
            return None
        values = run.scalars(BATCH).values
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


def _round_of(values: NDArray[np.float64]) -> int:
    """How many different batches come in turn at the end; 0 when they are not two to `_FEW` of them."""
    for count in range(2, _FEW + 1):
        last = values[-_ROUNDS * count :]
        if len(last) == _ROUNDS * count and np.array_equal(last[count:], last[:-count]):
            return count if len(np.unique(last)) == count else 0
    return 0
