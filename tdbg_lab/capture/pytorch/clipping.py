"""Clipping: tells when PyTorch or DeepSpeed is about to clip gradients, so that both sides are seen.

What the functions compute and return is left alone. Those of ``torch.nn.utils`` are decorated by PyTorch; the
function within the decorator is replaced by one that tells and calls it, so that those who imported the name
before us are seen too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CellType

    from tdbg_lab.listening import Listeners

__all__ = ["ClipWatch"]

_DEEPSPEED = "deepspeed.runtime.engine"
"""Where it calls its own ``clip_grad_norm_``."""


class ClipWatch:
    """Calls `before` with the parameters each time gradients are about to be clipped.

    It must be a method, and is held weakly.
    """

    def __init__(self, before: Callable[[list[torch.Tensor]], None]) -> None:
        self._placed: list[tuple[CellType, Any, Any]] = []
        self.before = weak = WeakMethod(before)
        for function in (clip_grad_norm_, clip_grad_value_):
            cell = _inner(function)
            if cell is not None:
                original = cell.cell_contents
                telling = _telling(original, weak)
                cell.cell_contents = telling
                self._placed.append((cell, telling, original))
        self._deepspeed = sys.modules.get(_DEEPSPEED)
        if self._deepspeed is not None:
            listen(self._deepspeed, "clip_grad_norm_", self, _heard)

    def detach(self) -> None:
        """Put the functions back as they were, unless somebody has replaced ours meanwhile. Idempotent."""
        while self._placed:
            cell, telling, original = self._placed.pop()
            if cell.cell_contents is telling:
                cell.cell_contents = original
        if self._deepspeed is not None:
            forget(self._deepspeed, "clip_grad_norm_", self)


def _inner(function: Any) -> CellType | None:
    """The variable of PyTorch's decorator that holds the function; None when it is not made like that."""
    names = function.__code__.co_freevars
    if "func" not in names or not function.__closure__:
        return None
    cell: CellType = function.__closure__[names.index("func")]
    return cell


def _telling(original: Any, weak: WeakMethod[Callable[[list[torch.Tensor]], None]]) -> Any:
    @functools.wraps(original)
    def tell(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        before = None if torch.compiler.is_compiling() else weak()
        if before is None:
            return original(parameters, *args, **kwargs)
        if isinstance(parameters, Iterator):
            parameters = list(parameters)
        before([parameters] if isinstance(parameters, torch.Tensor) else list(parameters))
        return original(parameters, *args, **kwargs)

    return tell


def _heard(original: Any, listeners: Listeners[ClipWatch]) -> Any:
    """What takes the place of DeepSpeed's own function."""

    @functools.wraps(original)
    def clip(*args: Any, **kwargs: Any) -> Any:
        tell = original
        for one in listeners:
            tell = _telling(tell, one.before)
        return tell(*args, **kwargs)

    return clip
