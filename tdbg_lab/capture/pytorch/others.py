"""Losses of models that are evaluated beside the captured one, as a moving average of its weights is.

Nothing of such a model is seen but what the loss makes of its outputs. That is of an evaluation where it is
computed without gradients, aside from what is trained, and not from the first step on: a teacher, and what is
measured of each step, are part of the training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.pytorch.values import tensors_in
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["OtherModels", "is_aside"]


class OtherModels:
    """Tells, of one loss, which values are of another model, and which number they have then.

    Who is evaluated first in a run has the plain name; the mean over batches is never one over two models.
    """

    __slots__ = ("_batch", "_engine", "_evaluated", "_number", "_own_number", "_per_batch", "_set_aside")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._evaluated = 0
        """Values in the last batch of an evaluation of the captured model; 0 before there was one."""
        self._per_batch = 0
        """Values in a batch of such an evaluation, once two batches were seen."""
        self._set_aside: bool | None = None
        """Whether what is computed aside from the training is of an evaluation; None before there was any."""
        self._number: int | None = None
        self._own_number = 0
        """Of the first value in a batch of an evaluation: of another model, and of the captured one."""
        self._batch = 1
        """Values in a batch of the other model: as many as there are of the captured one."""

    def number(self, calls: int) -> int:
        """The number of the captured model's value that comes after `calls` in a batch of an evaluation."""
        self._evaluated = calls + 1
        return self._own_number + calls

    def next_batch(self) -> None:
        """The captured model was called again in an evaluation."""
        self._per_batch = self._per_batch or self._evaluated

    def begin(self, args: Any, calls: int) -> int | None:
        """Where the value that comes is of another model, go on to its next batch if it is of one.

        Parameters
        ----------
        args
            What the loss is given.
        calls
            Values of this loss at the current place.

        Returns
        -------
        The number of the first value in its batch; None where it is of the captured model.
        """
        engine = self._engine
        if engine.visit == engine.other_visit:
            if calls >= self._batch:
                self._go_on()
        elif self._is_anothers(args, calls):
            self._batch = self._per_batch or self._evaluated or calls or 1
            self._go_on()
        else:
            return None
        if self._number is None:
            self._number = self._per_batch or self._evaluated
            self._own_number = 0 if self._number else self._batch
        return self._number

    def _go_on(self) -> None:
        self._engine.begin_batch()
        self._engine.other_visit = self._engine.visit

    def _is_anothers(self, args: Any, calls: int) -> bool:
        engine = self._engine
        if engine.recorder.mode is Mode.EVAL:
            return 0 < self._per_batch <= calls
        made = engine.step - engine.first_step
        if self._set_aside is None and made:
            self._set_aside = made > 1  # else it begins with the training, and is part of each step
        return bool(self._set_aside) and not any(one.requires_grad for one in tensors_in(args))


def is_aside(engine: Engine) -> bool:
    """Whether no model that is captured is running, and nothing can be trained by what is computed now."""
    return not (engine.depth or engine.override or torch.is_grad_enabled())
