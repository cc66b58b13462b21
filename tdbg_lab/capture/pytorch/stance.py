"""Compiled code: run eagerly while something inside it is due, because hooks fire nowhere else."""

from __future__ import annotations

import sys
from typing import Any

import torch

__all__ = ["EagerStance"]


class EagerStance:
    """Holds the compiler's stance ``force_eager``, or does not.

    Taking and leaving it costs microseconds and invalidates nothing that was compiled.
    """

    __slots__ = ("_held", "allowed")

    def __init__(self, *, allowed: bool = True) -> None:
        self.allowed = allowed and hasattr(torch.compiler, "set_stance")
        """Whether compiled code may be made to run eagerly."""
        self._held: Any = None

    def take(self) -> None:
        """Run compiled code eagerly from now on. Without a compiler in use, nothing happens."""
        if self._held is not None or not self.allowed or "torch._dynamo" not in sys.modules:
            return
        try:
            self._held = torch.compiler.set_stance("force_eager")
        except RuntimeError:
            return  # called from within compiled code, where it cannot be changed

    def leave(self) -> None:
        """Go back to what was before; a stance that somebody else took meanwhile stays."""
        held, self._held = self._held, None
        if held is None:
            return
        frame = sys.modules.get("torch._dynamo.eval_frame")
        if getattr(frame, "_stance", held.stance) is held.stance:
            held.__exit__(None, None, None)

    @property
    def sure(self) -> bool:
        """Whether nothing compiled can run now."""
        return self._held is not None or "torch._dynamo" not in sys.modules
