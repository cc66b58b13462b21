"""Libraries whose models, optimizers and losses are taken for those of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.of_deepspeed import DeepSpeed
from tdbg_lab.capture.pytorch.of_fastai import Fastai
from tdbg_lab.capture.pytorch.shown import Showing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.pytorch.shown import ShownOptimizer

__all__ = ["as_pytorch", "show_optimizers"]

_LIBRARIES = (DeepSpeed(), Fastai())


def as_pytorch(thing: Any) -> Any:
    """What PyTorch has for a model, an optimizer or a loss of these libraries; anything else as it is."""
    for library in _LIBRARIES:
        thing = library.as_pytorch(thing)
    return thing


def show_optimizers(made: Callable[[ShownOptimizer], None] | None = None) -> Showing:
    """Show the optimizers of these libraries to PyTorch's hooks until the answer is detached."""
    return Showing(_LIBRARIES, made)
