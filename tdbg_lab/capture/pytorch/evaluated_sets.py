"""Sets of data that are evaluated one after the other: told apart by the loaders that give their batches.

Who evaluates the training data, too, would see their loss and that of the validation as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch.utils.data import RandomSampler, SequentialSampler

from tdbg_lab.capture.pytorch.loaders import forget_batches, hear_of_batches
from tdbg_lab.capture.ranks import SilentWriter
from tdbg_lab.records import ON_TRAINING_DATA

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["EvaluatedSets"]

_MOST = 8
"""Sets of one evaluation that have a name; of more, each is a task rather than a set."""


class _Set(NamedTuple):
    """What a loader goes over, by its ``id``: as a number, it keeps nothing alive."""

    data: int
    sampler: int
    """Of what chooses some of the data; 0 for all."""


class EvaluatedSets:
    """Names the set that a batch is of.

    Attributes
    ----------
    batches
        How many loaders have given so far, to the thread that trains.
    accounted
        Up to which of them it is known what they were for.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.batches = self.accounted = 0
        self._last: _Set | None = None
        self._training: _Set | None = None
        """What the last step was trained on, if a loader gave it."""
        self._step = -1
        self._current: _Set | None = None
        self._order: list[_Set] = []
        """Sets of the current evaluation, in the order in which they came."""
        if not isinstance(engine.writer, SilentWriter):
            hear_of_batches(self)

    def note(self, iterator: Any) -> None:
        """An iterator over a loader has given a batch."""
        if self._engine.trains_here:
            self.batches += 1
            self._last = self._engine.guard.run("sets of data", _set_of, iterator)

    def end_step(self) -> None:
        """A step was made with the last batch."""
        self.accounted = self.batches
        self._training = self._last

    def ending(self) -> str:
        """What the name of a loss of the current batch of an evaluation ends with.

        Nothing for the first set, and for data that no loader gave.
        """
        if self._engine.step != self._step:
            self._step, self._current, self._order = self._engine.step, None, []
        if self.batches != self.accounted:
            self.accounted = self.batches
            self._current = self._last
        current, training = self._current, self._training
        if current is None:
            return ""
        if training is not None and current in {training, _Set(training.data, 0)}:
            return ON_TRAINING_DATA
        if current not in self._order:
            self._order.append(current)
        number = self._order.index(current)
        return f"/dataloader_idx_{number}" if 0 < number < _MOST else ""

    def detach(self) -> None:
        """Look away. Idempotent."""
        forget_batches(self)


def _set_of(iterator: Any) -> _Set:
    given = vars(iterator)
    batches = given.get("_index_sampler")
    sampler = getattr(batches, "sampler", batches)
    whole = sampler is None or type(sampler) in {SequentialSampler, RandomSampler}
    return _Set(id(given.get("_dataset")), 0 if whole else id(sampler))
