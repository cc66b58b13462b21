"""Collections of a PyTorch hook: they take modules too."""

from __future__ import annotations

from typing import Any

from tdbg_lab.smdebug.core.collection import Collection as BaseCollection

__all__ = ["Collection"]


class Collection(BaseCollection):
    """A collection that knows modules."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, *args, **kwargs)
        self._modules: dict[Any, tuple[bool, bool]] = {}

    @property
    def modules(self) -> dict[Any, tuple[bool, bool]]:
        """Modules that were added, and whether their inputs and their outputs were wanted."""
        return self._modules

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Add what goes into a module, or comes out of it."""
        self._modules[module] = (inputs, outputs)
