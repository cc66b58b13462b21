"""Trainings in which no optimizer steps: the program moves the parameters itself."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from torch.optim import Optimizer

from tdbg_lab.capture.pytorch.measuring import record_number
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe

__all__ = ["ByHand"]

_LONG = 256
"""Batches without a step of an optimizer that is there: it is not what trains."""

_FROZEN = 10_000
"""More objects than these are frozen only by ``gc.freeze()``: an optimizer among them is not seen."""


class ByHand:
    """Finds out whether parameters are moved by hand, and reads them then, once in a step."""

    def __init__(self, engine: Engine, parameters: ParameterProbe) -> None:
        self._engine = engine
        self._parameters = parameters
        self._optimizer_mask = engine.plan.mask_of(Kind.OPTIMIZER)
        self._awaited = 0
        """Batches that were seen before the first step of an optimizer."""
        self._read_step = -1

    def awaits(self) -> bool:
        """Whether a step is still to come from an optimizer that was not given, though the model ran again.

        Gradients of several batches are accumulated then. The program's optimizers are looked for once, among
        all its objects; if none of them steps for long, the model is trained in another way.
        """
        self._awaited += 1
        if self._awaited == 1 and not self._is_there():
            self._awaited = _LONG
        return self._awaited < _LONG

    def read(self, *, gradients: bool) -> None:
        """Record what is due of this step, if it is known that no optimizer steps.

        Parameters
        ----------
        gradients
            Whether a backward has just ended: gradients are those of this step.
        """
        engine = self._engine
        if self._awaited < _LONG or self._read_step == engine.step:
            return
        self._read_step = engine.step
        if engine.mask & (self._optimizer_mask | self._parameters.mask):
            engine.guard.run("parameters", self._record, engine.mask, gradients=gradients)

    def _record(self, due: int, *, gradients: bool) -> None:
        live = self._parameters.live()
        ids = {id(value) for _, value in live} if gradients else None
        norm = self._parameters.record(live, due, values=True, gradients_of=ids)
        key, membership = self._engine.key("optimizer/grad_norm", Kind.OPTIMIZER)
        if norm is not None and membership.mask & due:
            record_number(self._engine.recorder, key, norm)

    def _is_there(self) -> bool:
        """Whether the program holds an optimizer that moves parameters of the model, or may hold one."""
        if gc.get_freeze_count() > _FROZEN:
            return True
        known = {id(value) for _, value in self._parameters.live()}
        found = (one for one in gc.get_objects() if issubclass(type(one), Optimizer))
        return any(
            id(one) in known
            for optimizer in found
            for group in getattr(optimizer, "param_groups", ())
            for one in group["params"]
        )
