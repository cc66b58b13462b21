"""Optimizers of other libraries that are none of PyTorch's: shown to the hooks of PyTorch as if they were."""

from __future__ import annotations

import gc
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary, WeakMethod, ref

import torch
from torch.optim import Optimizer

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.listening import Listeners

__all__ = ["Library", "Showing", "ShownOptimizer", "TellingOptimizer", "show"]


class ShownOptimizer(Optimizer):
    """What PyTorch's hooks are given of another optimizer: its groups of parameters and its state.

    Its step is one of the other, which it does not keep alive.
    """

    def __init__(self, optimizer: Any) -> None:
        self._shown = ref(optimizer)
        self._step: Callable[[], Any] | None = None
        super().__init__([torch.zeros(0)], {"lr": None})  # an empty list is refused

    @property
    def shown(self) -> Any:
        """The other optimizer; None when it is gone."""
        return self._shown()

    @property
    def inner(self) -> Any:
        """The optimizer of PyTorch that the other has make its steps; None where there is none."""
        return None

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """As they are now."""
        shown = self._shown()
        return [] if shown is None else self._groups_of(shown)

    @param_groups.setter
    def param_groups(self, groups: Any) -> None:
        """It has none of its own."""

    def _groups_of(self, optimizer: Any) -> list[dict[str, Any]]:
        """Parameters and settings, by PyTorch's names."""
        raise NotImplementedError

    @property
    def state(self) -> Any:
        """What the other keeps of each parameter."""
        return getattr(self._shown(), "state", {})

    @state.setter
    def state(self, state: Any) -> None:
        """It has none of its own."""

    def make(self, step: Callable[[], Any]) -> Any:
        """Make a step of the other between the hooks."""
        if self._step is not None:  # a class whose step calls that of the one it is made of
            return step()
        self._step = step
        try:
            return self.step()
        finally:
            self._step = None

    def step(self, closure: Any = None) -> Any:  # noqa: ARG002 - none of them takes one
        """Called by `make`, with PyTorch's hooks around it."""
        return None if self._step is None else self._step()


class TellingOptimizer(ShownOptimizer):
    """One that finds out by itself, within its step, what else is read around it."""

    @property
    def grad_scale(self) -> float | None:
        """What the gradients are still multiplied by; None for nothing, as PyTorch's fused optimizers say."""
        raise NotImplementedError

    @property
    def left_out(self) -> bool:
        """Whether the last step was left out because of gradients that are not finite."""
        raise NotImplementedError

    @property
    def norm(self) -> float | torch.Tensor | None:
        """L2 norm of all gradients of the last step, before they were clipped; None where it is not known."""
        raise NotImplementedError


class Library(Protocol):
    """What is known of a library that has optimizers of its own."""

    def kinds(self) -> Iterable[type]:
        """Its classes of optimizers that make steps, as far as they are loaded."""

    def show(self, optimizer: Any) -> ShownOptimizer | None:
        """What is to be shown of one of them; None if it has another one of them make its step."""


_SHOWN: WeakKeyDictionary[Any, ShownOptimizer] = WeakKeyDictionary()


def show(optimizer: Any, library: Library) -> ShownOptimizer | None:
    """What is shown of it, always the same; None where nothing can be."""
    try:
        found = _SHOWN.get(optimizer)
        if found is None and (made := library.show(optimizer)) is not None:
            found = _SHOWN[optimizer] = made
    except Exception:  # noqa: BLE001 - its step is the program's
        return None
    return found


class Showing:
    """Shows the optimizers of some libraries as long as somebody captures: those there are, and new ones.

    Parameters
    ----------
    made
        A method that is told what is shown of a new one; its owner, which owns this, is held weakly.
    """

    def __init__(
        self, libraries: Iterable[Library], made: Callable[[ShownOptimizer], None] | None = None
    ) -> None:
        self._libraries = tuple(libraries)
        self._made = None if made is None else WeakMethod(made)
        self._kinds: list[type] = []
        self.look()

    def look(self) -> None:
        """Show what has been loaded since. Idempotent."""
        for library in self._libraries:
            kinds = tuple(one for one in library.kinds() if one not in self._kinds)
            for kind in kinds:
                self._kinds.append(kind)
                listen(kind, "step", self, _stepping(library))
                listen(kind, "__init__", self, _making(library))
            if kinds:
                for one in gc.get_objects():
                    if issubclass(type(one), kinds):
                        show(one, library)

    def note(self, shown: ShownOptimizer) -> None:
        """One was made."""
        made = None if self._made is None else self._made()
        if made is not None:
            made(shown)

    def detach(self) -> None:
        """Show them no longer. Idempotent."""
        while self._kinds:
            kind = self._kinds.pop()
            forget(kind, "step", self)
            forget(kind, "__init__", self)


def _stepping(library: Library) -> Callable[..., Callable[..., Any]]:
    def heard(original: Callable[..., Any], _listeners: Listeners[Showing]) -> Callable[..., Any]:
        @wraps(original)
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            shown = show(self, library)
            if shown is None:
                return original(self, *args, **kwargs)
            return shown.make(lambda: original(self, *args, **kwargs))

        return step

    return heard


def _making(library: Library) -> Callable[..., Callable[..., Any]]:
    def heard(original: Callable[..., Any], listeners: Listeners[Showing]) -> Callable[..., Any]:
        @wraps(original)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if (shown := show(self, library)) is not None:
                for one in listeners:
                    one.note(shown)

        return init

    return heard
