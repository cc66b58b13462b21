"""Hooks of layers, on their modules only while something of a layer is due.

PyTorch calls a module that has hooks on a slower path, and the compiler guards what hangs on a module;
so the layers of steps that are not saved have none of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.pytorch.hook import BoundaryHook, ModuleHook

__all__ = ["LayerHooks"]


class _Place:
    """One hook and where it belongs: among the hooks of its module, too, which may change what it sees."""

    __slots__ = ("_before", "_handle", "_hook", "_marks")

    def __init__(self, handle: RemovableHandle, hook: ModuleHook | BoundaryHook) -> None:
        self._handle = handle
        self._hook = hook
        self._before: frozenset[int] = frozenset()
        """Hooks that are called before it."""
        self._marks = [marks for marks in handle.extra_dict_ref if handle.id in (marks() or ())]
        """Where the module has marked how to call it. To the compiler a mark alone is a hook, too."""

    def hang(self) -> None:
        hooks = self._handle.hooks_dict_ref()
        if hooks is None:
            return
        own = self._handle.id
        hooks[own] = self._hook
        for marks in self._marks:
            if (marked := marks()) is not None:
                marked[own] = True
        if len(hooks) > 1:
            for other in [one for one in hooks if one != own and one not in self._before]:
                hooks.move_to_end(other)

    def take_off(self) -> None:
        hooks: Any = self._handle.hooks_dict_ref()
        if hooks is None:
            return
        own = self._handle.id
        if len(hooks) > 1 and own in hooks:
            names = list(hooks)
            self._before = frozenset(names[: names.index(own)])
        hooks.pop(own, None)
        for marks in self._marks:
            if (marked := marks()) is not None:
                marked.pop(own, None)

    def remove(self) -> None:
        self._handle.remove()


class LayerHooks:
    """All hooks of layers of one handle. They keep nothing alive: those of the models do.

    PyTorch goes through a copy of a module's hooks, so they may change while the module runs.

    Parameters
    ----------
    fixed
        They stay where they are.

    Attributes
    ----------
    hung
        Whether they hang on their modules now.
    """

    def __init__(self, *, fixed: bool) -> None:
        self.hung = True
        self._fixed = fixed
        self._places: list[_Place] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, handle: RemovableHandle, hook: ModuleHook | BoundaryHook) -> None:
        """Take charge of a hook that hangs on its module."""
        self._places.append(_Place(handle, hook))

    def hang(self) -> None:
        """Hang them on their modules: something of a layer is due."""
        if not self.hung:
            self.hung = True
            for place in self._places:
                place.hang()

    def take_off(self) -> None:
        """Take them off their modules until something is due."""
        if self.hung and not self._fixed:
            self.hung = False
            for place in self._places:
                place.take_off()

    def remove(self) -> None:
        """Take them off for good. Idempotent."""
        while self._places:
            self._places.pop().remove()
