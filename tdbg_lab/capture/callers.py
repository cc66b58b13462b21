"""What the functions of a library that call us hold: how it keeps its training is not public."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["caller_frame", "caller_local"]

_MAX_FRAMES = 5


def caller_frame(name: str, kind: type, *, most: int) -> FrameType | None:
    """The nearest of `most` callers whose local variable `name` is of a kind."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    for _ in range(most):
        if frame is None or isinstance(frame.f_locals.get(name), kind):
            return frame
        frame = frame.f_back
    return None


def caller_local(name: str, kind: type) -> Any:
    """A local variable of one of the callers, or None."""
    frame = caller_frame(name, kind, most=_MAX_FRAMES)  # this function among them
    return None if frame is None else frame.f_locals[name]
