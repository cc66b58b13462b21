"""Trainings in which no optimizer steps: the program moves the parameters itself."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import torch
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from tdbg_lab.capture.pytorch.measuring import record_number
from tdbg_lab.capture.pytorch.values import local, sample_of
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe

__all__ = ["ByHand"]

_LONG = 256
"""Batches without a step of an optimizer that is there: it is not what trains."""

_LOOKED_AT = 4
"""Parameters that are looked at for having moved."""

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
        self._samples: list[torch.Tensor] = []
        """Some values of a few parameters, as they were when they were looked at last."""
        self._read_step = -1

    def awaits(self) -> bool:
        """Whether a step is still to come from an optimizer that was not given, though the model ran again.

        Gradients of several batches are accumulated then. The program's optimizers are looked for once, among
        all its objects; if none of them steps for long, or the parameters move all the same, as those of LOMO
        do within the backward pass, the model is trained in another way.
        """
        if self._awaited >= _LONG:
            return False
        self._awaited += 1
        looks = self._awaited & (self._awaited - 1) == 0  # at the 1st, the 2nd, the 4th, the 8th, ...
        if (self._awaited == 1 and not self._is_there()) or (looks and self._has_moved()):
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

    def _has_moved(self) -> bool:
        """Whether some values are others than at the last look."""
        values = [
            value
            for _, value in self._parameters.live()
            if value.requires_grad and value.layout is torch.strided and not is_lazy(value)
        ]
        before = self._samples
        self._samples = [sample_of(local(one)) for one in values[:: max(1, len(values) // _LOOKED_AT)]]
        pairs = zip(before, self._samples, strict=False)
        return any(one.shape != now.shape or not torch.equal(one, now) for one, now in pairs)

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
