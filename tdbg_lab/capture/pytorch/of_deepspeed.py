"""What DeepSpeed puts around models and optimizers of PyTorch.

Its engine is a module that calls the model. Its optimizers are none of PyTorch's: they hand flat pieces of
all parameters to one that is. They are shown with the parameters of the model.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.shown import TellingOptimizer, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

__all__ = ["DeepSpeed"]

_OPTIMIZERS, _ENGINE = "deepspeed.runtime.base_optimizer", "deepspeed.runtime.engine"
_PARAMETERS = ("bit16_groups", "bf16_groups", "fp16_groups")
"""What the classes call the lists of the model's parameters."""


class _Group(dict[str, Any]):
    """A group with the model's parameters instead of the flat pieces; what is set is set in the other."""

    def __init__(self, params: list[torch.Tensor], group: dict[str, Any]) -> None:
        super().__init__({**group, "params": params})
        self._group = group

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name != "params":
            self._group[name] = value


class _Shown(TellingOptimizer):
    def _groups_of(self, optimizer: Any) -> list[dict[str, Any]]:
        lists = [list(one) for one in _lists_of(optimizer) or ()]
        inner = optimizer.param_groups
        owner = getattr(optimizer, "sub_group_to_group_id", None)  # the third stage divides groups further
        parameters: list[list[torch.Tensor]] = [[] for _ in (lists if owner is None else inner)]
        for index, some in enumerate(lists):
            parameters[index if owner is None else owner[index]] += some
        if len(inner) != len(parameters):  # within its step, which it makes with one group after the other
            return [{"params": some} for some in parameters]
        return [_Group(some, group) for some, group in zip(parameters, inner, strict=True)]

    @property
    def inner(self) -> Any:
        """What moves the pieces."""
        return getattr(self.shown, "optimizer", None)

    @property
    def state(self) -> Any:
        """Of the pieces."""
        return getattr(self.inner, "state", {})

    @state.setter
    def state(self, state: Any) -> None:
        """It has none of its own."""

    @property
    def grad_scale(self) -> float | None:
        """The scale of the loss in half precision."""
        scale = getattr(self.shown, "loss_scale", None)
        return None if scale is None or float(scale) == 1.0 else float(scale)

    @property
    def left_out(self) -> bool:
        """Whether gradients overflowed in the last step."""
        return bool(getattr(self.shown, "overflow", False))

    @property
    def norm(self) -> float | torch.Tensor | None:
        """Over the gradients of all processes."""
        norm: float | torch.Tensor | None = getattr(self.shown, "_global_grad_norm", None)
        return norm


class DeepSpeed:
    """A `Library`, and what it gives as a model or an optimizer."""

    def kinds(self) -> Iterator[type]:
        """The classes that have a step."""
        base = getattr(sys.modules.get(_OPTIMIZERS), "DeepSpeedOptimizer", None)
        waiting = [] if base is None else [base]
        for kind in waiting:
            waiting += kind.__subclasses__()
            if "step" in vars(kind):
                yield kind

    def show(self, optimizer: Any) -> TellingOptimizer | None:
        """One whose parameters are not known is not shown."""
        return None if _lists_of(optimizer) is None else _Shown(optimizer)

    def as_pytorch(self, thing: Any) -> Any:
        """The model of an engine, what is shown of an optimizer of DeepSpeed; anything else as it is."""
        engine = getattr(sys.modules.get(_ENGINE), "DeepSpeedEngine", None)
        if engine is not None and isinstance(thing, engine):
            return thing.module
        return (show(thing, self) or thing) if isinstance(thing, tuple(self.kinds())) else thing


def _lists_of(optimizer: Any) -> Any:
    """Lists of the model's parameters; None while there are none."""
    return next((found for name in _PARAMETERS if (found := vars(optimizer).get(name))), None)
