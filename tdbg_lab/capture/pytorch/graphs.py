"""CUDA graphs: what runs inside one is not seen, and nothing of it may be read while it is captured.

Reading waits for the device, which ends a capture with an error: the training's, not ours. A replay calls
no module and no hook; so that it is said also where the graph was captured before us, it is watched itself.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.listening import Listeners

__all__ = ["CAN_CAPTURE", "GraphWatch", "within_graph"]

_stream_is_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)  # noqa: SLF001
CAN_CAPTURE = _stream_is_capturing is not None and torch.version.cuda is not None
"""Whether this PyTorch knows CUDA graphs."""

_SUBJECT = "CUDA graph"
_CAPTURED = "a CUDA graph is captured, and what runs inside it is not seen when it is replayed"
_REPLAYED = "a CUDA graph is replayed, and what runs inside it is not seen, nor counted as a step"
_COMPILER = "torch._inductor."
"""Replays graphs of its own; saved steps run without it."""


def within_graph(engine: Engine) -> bool:
    """Whether a graph is being captured: nothing may be read then, which is said once."""
    if not (CAN_CAPTURE and torch.cuda._initialized and _stream_is_capturing()):  # noqa: SLF001
        return False
    engine.guard.notice(_SUBJECT, _CAPTURED)
    return True


class GraphWatch:
    """Says once that a graph is replayed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kind: Any = getattr(torch.cuda, "CUDAGraph", None) if CAN_CAPTURE else None
        if self._kind is not None:
            listen(self._kind, "replay", self, _telling)

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        if self._kind is not None:
            forget(self._kind, "replay", self)

    def note(self, caller: str) -> None:
        """A module of this name replays a graph."""
        if self._engine.open and not caller.startswith(_COMPILER):
            self._engine.guard.notice(_SUBJECT, _REPLAYED)


def _telling(original: Callable[..., Any], watches: Listeners[GraphWatch]) -> Callable[..., Any]:
    @functools.wraps(original)
    def replay(graph: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001
        for watch in watches:
            watch.note(caller)
        return original(graph)

    return replay
