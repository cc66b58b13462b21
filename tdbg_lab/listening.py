"""Functions of other libraries whose calls are listened to.

A function is replaced by one that tells its listeners and calls it, while there is somebody who listens; it
is put back behind the last one. Listeners are held weakly: one that is gone has left.
"""

from __future__ import annotations

from threading import RLock
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CHANGING", "Audience", "Listeners", "forget", "listen"]

_MARK = "_tdbg_lab_listeners"
_FUNCTIONS = FunctionType | BuiltinFunctionType | MethodDescriptorType

CHANGING = RLock()
"""Held while somebody comes or goes: trainings in threads listen to the same functions."""

Listener = TypeVar("Listener")


class Audience(Generic[Listener]):
    """Who is told of something; iterates over those that are still there.

    Parameters
    ----------
    end
        Called when the last one has left. Idempotent.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._all: tuple[ref[Listener], ...] = ()

    def __iter__(self) -> Iterator[Listener]:
        for weak in self._all:
            listener = weak()
            if listener is not None:
                yield listener

    def add(self, listener: Listener) -> None:
        """Tell one more."""
        with CHANGING:
            self._all = (*self._all, ref(listener, self._leave))

    def remove(self, listener: Listener) -> None:
        """Tell one no longer who may not have listened at all."""
        for weak in self._all:
            if weak() is listener:
                self._leave(weak)

    def _leave(self, weak: ref[Listener]) -> None:
        with CHANGING:
            self._all = tuple(one for one in self._all if one is not weak)
            if not self._all:
                self._end()


class Listeners(Audience[Listener]):
    """Who listens to one function of a module or class."""

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__(self._put_back)
        self._owner = owner
        self._name = name
        self._inherited = name not in vars(owner)
        self.original: Any = getattr(owner, name)
        self.heard: Any = None
        """What stands in the place of the original."""

    def replace(self, heard: Callable[..., Any]) -> None:
        """Put `heard` in the place of the original."""
        self.heard = heard
        setattr(heard, _MARK, self)
        setattr(self._owner, self._name, heard)

    def _put_back(self) -> None:
        if vars(self._owner).get(self._name) is self.heard:  # nobody put theirs around ours
            if self._inherited:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self.original)


def listen(
    owner: Any,
    name: str,
    listener: Listener,
    heard: Callable[[Callable[..., Any], Listeners[Listener]], Callable[..., Any]],
) -> bool:
    """Have `listener` told of the calls of a function from now on.

    Parameters
    ----------
    owner, name
        Module or class, and the name of the function in it; a class may have inherited it.
    listener
        Is held weakly.
    heard
        Makes, from the original function and whoever listens, the one that takes its place.

    Returns
    -------
    bool
        Whether there is such a function.
    """
    with CHANGING:
        function = vars(owner).get(name) or getattr(owner, name, None)
        listeners: Listeners[Listener] | None = getattr(function, _MARK, None)
        if listeners is None:
            if not isinstance(function, _FUNCTIONS):
                return False
            listeners = Listeners(owner, name)
            listeners.replace(heard(listeners.original, listeners))
        listeners.add(listener)
        return True


def forget(owner: Any, name: str, listener: object) -> None:
    """Tell `listener` no longer of the calls of a function. Idempotent."""
    with CHANGING:
        listeners: Listeners[object] | None = getattr(getattr(owner, name, None), _MARK, None)
        if listeners is not None:
            listeners.remove(listener)
