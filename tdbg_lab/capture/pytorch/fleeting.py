"""Hooks that may be copied and pickled together with the model they hang on, and do nothing there."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fleeting"]

_INERT: Callable[..., None] = nullcontext().__exit__
"""Takes anything and does nothing. It is none of ours: a model that was saved while it was captured must load
where tdbg-lab is not installed."""


class Fleeting:
    """Base of hooks: on a copy of the model, and on one that is loaded, nothing is left of them."""

    __slots__ = ()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Callable[..., None]:
        return _INERT

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _INERT.__reduce__()
