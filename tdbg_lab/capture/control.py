"""Requests to the training process: polled at step boundaries, answered in place."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from tdbg_lab.store import ControlPoll, answer

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.store import Request

__all__ = ["ControlWatch"]

_INTERVAL_S = 0.2


class ControlWatch:
    """Looks for requests, at most every 0.2 s."""

    __slots__ = ("_next_s", "_pending", "_run_path")

    def __init__(self, run_path: Path) -> None:
        self._run_path = run_path
        self._pending = ControlPoll(run_path)
        self._next_s = 0.0

    def poll(self) -> Request | None:
        """The oldest stop request, if there is one; requests of other kinds are refused."""
        now = monotonic()
        if now < self._next_s:
            return None
        self._next_s = now + _INTERVAL_S
        for request in self._pending():
            if request.kind == "stop":
                return request
            answer(self._run_path, request.id, "refused", f"training does not know {request.kind!r}")
        return None

    def answer(self, request: Request, text: str) -> None:
        """Answer a stop request."""
        answer(self._run_path, request.id, "done", text)
