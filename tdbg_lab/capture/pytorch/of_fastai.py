"""What fastai has of its own beside what PyTorch has: its optimizers, and losses around a module."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.shown import ShownOptimizer, show

if TYPE_CHECKING:
    import torch

__all__ = ["Fastai"]

_OPTIMIZERS, _LOSSES = "fastai.optimizer", "fastai.losses"
_NAMES = {"mom": "momentum", "wd": "weight_decay"}
"""What fastai calls the settings of a group, and PyTorch."""


class _Group(dict[str, Any]):
    """A group of parameters under the names of PyTorch; what is set is set in fastai's."""

    def __init__(self, params: list[torch.Tensor], hyper: dict[str, Any]) -> None:
        super().__init__({_NAMES.get(name, name): value for name, value in hyper.items()}, params=params)
        self._hyper = hyper
        if "mom" in hyper and "sqr_mom" in hyper:
            super().__setitem__("betas", (hyper["mom"], hyper["sqr_mom"]))
            del self["momentum"]

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        own = next((one for one, other in _NAMES.items() if other == name), name)
        if own in self._hyper:
            self._hyper[own] = value


class _Shown(ShownOptimizer):
    def _groups_of(self, optimizer: Any) -> list[dict[str, Any]]:
        pairs = zip(optimizer.param_lists, optimizer.hypers, strict=True)
        return [_Group(list(params), hyper) for params, hyper in pairs]


class Fastai:
    """A `Library`, and what it gives as an optimizer or a loss."""

    def kinds(self) -> list[type]:
        """One, of which all its optimizers are."""
        kind = getattr(sys.modules.get(_OPTIMIZERS), "Optimizer", None)
        return [] if kind is None else [kind]

    def show(self, optimizer: Any) -> ShownOptimizer | None:
        """One that is put around another has that one make its step."""
        return _Shown(optimizer) if _innermost(optimizer, self.kinds()[0]) is optimizer else None

    def as_pytorch(self, thing: Any) -> Any:
        """What PyTorch has for an optimizer or a loss of fastai; anything else as it is."""
        for kind in self.kinds():
            if isinstance(thing, kind):
                return show(_innermost(thing, kind), self) or thing
        loss = getattr(sys.modules.get(_LOSSES), "BaseLoss", None)
        return thing.func if loss is not None and isinstance(thing, loss) else thing


def _innermost(optimizer: Any, kind: Any) -> Any:
    """The one within, as that of a `Lookahead`, which has everything of it besides."""
    passed = [optimizer]
    while isinstance(inner := vars(passed[-1]).get("opt"), kind) and all(inner is not one for one in passed):
        passed.append(inner)
    return passed[-1]
