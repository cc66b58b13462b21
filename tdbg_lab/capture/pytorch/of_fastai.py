"""What fastai has of its own beside what PyTorch has.

Its optimizers are none of PyTorch's, and are shown to the hooks of PyTorch as if they were; its losses hold
a module that computes them.
"""

from __future__ import annotations

import gc
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import torch
from torch.optim import Optimizer

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.listening import Listeners

__all__ = ["FastaiOptimizers", "ShownOptimizer", "as_pytorch"]

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


class ShownOptimizer(Optimizer):
    """What PyTorch's hooks are given of an optimizer of fastai: its groups of parameters and its state.

    Its step is one of the other, which it does not keep alive.
    """

    def __init__(self, optimizer: Any) -> None:
        self._shown = ref(optimizer)
        self._step: Callable[[], Any] | None = None
        super().__init__([torch.zeros(0)], {"lr": None})  # an empty list is refused

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """As they are now."""
        shown = self._shown()
        if shown is None:
            return []
        pairs = zip(shown.param_lists, shown.hypers, strict=True)
        return [_Group(list(params), hyper) for params, hyper in pairs]

    @param_groups.setter
    def param_groups(self, groups: Any) -> None:
        """It has none of its own."""

    @property
    def state(self) -> Any:
        """What the other keeps of each parameter."""
        return getattr(self._shown(), "state", {})

    @state.setter
    def state(self, state: Any) -> None:
        """It has none of its own."""

    def make(self, step: Callable[[], Any]) -> Any:
        """Make a step of the other between the hooks."""
        self._step = step
        try:
            return self.step()
        finally:
            self._step = None

    def step(self, closure: Any = None) -> Any:  # noqa: ARG002 - fastai refuses closures
        """Called by `make`, with PyTorch's hooks around it."""
        return None if self._step is None else self._step()


_SHOWN: WeakKeyDictionary[Any, ShownOptimizer] = WeakKeyDictionary()


def as_pytorch(thing: Any) -> Any:
    """What PyTorch has for an optimizer or a loss of fastai; anything else as it is."""
    optimizer, loss = _kind(), getattr(sys.modules.get(_LOSSES), "BaseLoss", None)
    if optimizer is not None and isinstance(thing, optimizer):
        return _show(_innermost(thing, optimizer)) or thing
    return thing.func if loss is not None and isinstance(thing, loss) else thing


class FastaiOptimizers:
    """Shows them as long as somebody captures, those that are there and those that are made."""

    def __init__(self) -> None:
        self._kind: Any = None
        self.look()

    def look(self) -> None:
        """Begin, if fastai has been imported by now. Idempotent."""
        if self._kind is not None or (kind := _kind()) is None:
            return
        self._kind = kind
        listen(kind, "step", self, _stepping)
        listen(kind, "__init__", self, _making)
        for one in gc.get_objects():
            if issubclass(type(one), kind) and _makes_step(one, kind):
                _show(one)

    def detach(self) -> None:
        """Show them no longer. Idempotent."""
        if self._kind is not None:
            forget(self._kind, "step", self)
            forget(self._kind, "__init__", self)
            self._kind = None


def _kind() -> Any:
    return getattr(sys.modules.get(_OPTIMIZERS), "Optimizer", None)


def _makes_step(optimizer: Any, kind: Any) -> bool:
    """Whether it makes its step itself; one that is put around another has that one make it."""
    return _innermost(optimizer, kind) is optimizer


def _innermost(optimizer: Any, kind: Any) -> Any:
    """The one within, as that of a `Lookahead`, which has everything of it besides."""
    passed = [optimizer]
    while isinstance(inner := vars(passed[-1]).get("opt"), kind) and all(inner is not one for one in passed):
        passed.append(inner)
    return passed[-1]


def _show(optimizer: Any) -> ShownOptimizer | None:
    """What is shown of it; None where that cannot be, as of one that takes no weak reference."""
    try:
        found = _SHOWN.get(optimizer)
        if found is None:
            found = _SHOWN[optimizer] = ShownOptimizer(optimizer)
    except Exception:  # noqa: BLE001 - its step is the program's
        return None
    return found


def _stepping(original: Callable[..., Any], _listeners: Listeners[FastaiOptimizers]) -> Callable[..., Any]:
    @wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        shown = _show(self)
        if shown is None:
            return original(self, *args, **kwargs)
        return shown.make(lambda: original(self, *args, **kwargs))

    return step


def _making(original: Callable[..., Any], _listeners: Listeners[FastaiOptimizers]) -> Callable[..., Any]:
    @wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _show(self)

    return init
