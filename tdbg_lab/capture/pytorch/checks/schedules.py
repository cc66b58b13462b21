"""Learning-rate schedulers: whether the one that was made for an optimizer is ever stepped."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import SWALR

from tdbg_lab.capture.pytorch.instances import instances_of

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from tdbg_lab.capture.notes import Notes

__all__ = ["ScheduleWatch"]

_LOOK_AT = (1, 4)
"""Steps at which schedulers are looked for; the search takes some milliseconds."""


class ScheduleWatch:
    """The schedulers of all optimizers of a run."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._found: list[ref[LRScheduler]] = []
        self._steps = 0
        self.none = False
        """Whether it was looked for schedulers in vain: there is nothing more to do."""

    def before_step(self, optimizers: list[Optimizer], *, due: bool) -> None:
        """Note how often schedulers were stepped: at saved steps, and when the first of them was."""
        self._steps += 1
        if self._steps in _LOOK_AT and not self._found:
            self._found = _search([one for one in optimizers if _scheduled(one)])
            self.none = not self._found and self._steps == _LOOK_AT[-1]
        if self._found and (due or not self._notes.value("scheduler_steps")):
            counts = [_steps_of(one) for weak in self._found if (one := weak()) is not None]
            if counts:
                self._notes.set("schedulers", float(len(counts)))
                self._notes.set("scheduler_steps", float(max(counts)))


def _steps_of(scheduler: LRScheduler) -> int:
    """How often it was stepped at least.

    Not all count calls (CosineAnnealingWarmRestarts, SequentialLR), but all know their epoch.
    """
    calls = getattr(scheduler, "_step_count", None) or 1
    return max(int(calls) - 1, int(getattr(scheduler, "last_epoch", 0) or 0))


def _scheduled(optimizer: Optimizer) -> bool:
    """Whether a scheduler was ever made for the optimizer: it leaves its mark on ``step``."""
    return hasattr(optimizer.step, "_wrapped_by_lr_sched")


def _search(optimizers: list[Optimizer]) -> list[ref[LRScheduler]]:
    """The schedulers of these optimizers. An optimizer does not know them, so they are searched for.

    That of stochastic weight averaging waits until the averaging begins, late in a training.
    """
    if not optimizers:
        return []
    ours = {id(one) for one in optimizers}
    return [
        ref(one)
        for one in instances_of(LRScheduler)
        if id(getattr(one, "optimizer", None)) in ours and not isinstance(one, SWALR)
    ]
