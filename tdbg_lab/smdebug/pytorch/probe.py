"""Hooks on modules and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.pytorch.fleeting import Fleeting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.guard import Guard


__all__ = ["Probe"]


class Probe(Fleeting):
    """Calls a method of the hook inside its guard; on a copy of the model it does nothing."""

    __torch_unserializable__ = True  # a model with it is pickled without a warning

    def __init__(self, guard: Guard, name: str, function: Callable[..., None]) -> None:
        self._guard = guard
        self._name = name
        self._function = function

    def __call__(self, *values: Any) -> None:
        """Whatever the framework passes is passed on."""
        if not torch.compiler.is_compiling():
            self._guard.run(self._name, self._function, *values)
