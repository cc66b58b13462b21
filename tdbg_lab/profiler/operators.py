"""Operators, kernels and memory of PyTorch, through torch.profiler; the trace is a Chrome trace."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConflictError

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.profiler.window import ProfileWindow

__all__ = ["TRACE", "OperatorPass"]

TRACE = "trace.json"


class OperatorPass:
    """torch.profiler over some steps. Everything but `save` belongs to the training thread."""

    what = "operators"

    def __init__(self, window: ProfileWindow) -> None:
        self._window = window
        self._profiler: Any = None
        self._mark: Any = None

    def start(self, step: int) -> None:
        """Begin, with `step`.

        Raises
        ------
        ConflictError
            There is no PyTorch, or the program profiles itself.
        """
        torch = sys.modules.get("torch")
        if torch is None:
            raise ConflictError("operators are recorded for PyTorch only")
        if torch._C._autograd._profiler_enabled():  # noqa: SLF001 - there is no public way to ask
            raise ConflictError("the program runs torch.profiler itself, and there can be only one")
        profiler: Any = import_module("torch.profiler")
        window = self._window
        self._profiler = profiler.profile(
            activities=sorted(profiler.supported_activities(), key=str),
            record_shapes=window.shapes,
            profile_memory=window.memory,
            with_stack=window.stacks,
        )
        self._profiler.start()
        self._enter(step)

    def step(self, step: int) -> None:
        """`step` begins."""
        self._leave()
        self._enter(step)

    def stop(self) -> None:
        """End."""
        self._leave()
        self._profiler.stop()

    def save(self, folder: Path) -> None:
        """Write the trace, `TRACE`. Any thread."""
        self._profiler.export_chrome_trace(str(folder / TRACE))
        self._profiler = None

    def _enter(self, step: int) -> None:
        from torch.profiler import record_function

        self._mark = record_function(f"ProfilerStep#{step}")
        self._mark.__enter__()

    def _leave(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None
