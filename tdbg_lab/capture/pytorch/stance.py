"""Compiled code: run eagerly while something inside it is due, because hooks fire nowhere else."""

from __future__ import annotations

import sys
import threading
from typing import Any

import torch

__all__ = ["EagerStance", "has_compiled"]


def has_compiled() -> bool:
    """Whether PyTorch's compiler was at work in this process. An optimizer loads it, too."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None) or {}
    return bool(counters.get("frames", {}).get("total", 0))


class _Process:
    """The stance of this process: the first who holds it takes it, the last who leaves gives it back.

    In whatever order: each giving back what it found would bring back what another one had taken.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a holder may be collected at any moment
        self._holders = 0
        self._held: Any = None

    def take(self) -> None:
        with self._lock:
            if not self._holders:
                self._held = torch.compiler.set_stance("force_eager")
            self._holders += 1

    def leave(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
            held, self._held = self._held, None
        frame = sys.modules.get("torch._dynamo.eval_frame")
        if getattr(frame, "_stance", held.stance) is held.stance:
            held.__exit__(None, None, None)


_PROCESS = _Process()


class EagerStance:
    """Holds the compiler's stance ``force_eager``, or does not.

    Taking and leaving it costs microseconds and invalidates nothing that was compiled. Who is forgotten
    while holding it lets it go.
    """

    __slots__ = ("allowed", "early", "holds", "within")

    def __init__(self, *, allowed: bool = True) -> None:
        self.allowed = allowed and hasattr(torch.compiler, "set_stance")
        """Whether compiled code may be made to run eagerly."""
        self.holds = False
        """Whether it is held now."""
        self.within = False
        """Whether compiled code is running now, for which the stance comes too late."""
        self.early = False
        """Whether models are called within compiled code: the stance must be taken at the end of a step."""

    def __del__(self) -> None:
        """Leave."""
        self.leave()

    def take(self) -> None:
        """Run compiled code eagerly from now on. Without a compiler in use, nothing happens."""
        if self.holds or self.within or not self.allowed or "torch._dynamo" not in sys.modules:
            return
        try:
            _PROCESS.take()
        except RuntimeError:
            return  # called from within compiled code, where it cannot be changed
        self.holds = True

    def leave(self) -> None:
        """Go back to what was before; a stance that somebody else took meanwhile stays."""
        if self.holds:
            self.holds = False
            _PROCESS.leave()

    @property
    def sure(self) -> bool:
        """Whether nothing compiled can run now."""
        return self.holds or "torch._dynamo" not in sys.modules
