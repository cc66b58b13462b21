"""Requests to the training process: polled at step boundaries, answered in place.

Several processes must stop after the same step, or the one that goes on waits for the others for
ever. The chief hears the request at the end of a step, writes into the run directory that everybody
stops at the end of the next one, and only then takes part in that step's exchange of gradients. So
whoever comes out of that exchange finds it written.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from tdbg_lab.store import ControlPoll, Request, StopBoard, answer

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ControlWatch", "SharedControlWatch"]

_INTERVAL_S = 0.2


class ControlWatch:
    """Looks for requests, at most every 0.2 s."""

    __slots__ = ("_next_s", "_pending", "_run_path")

    def __init__(self, run_path: Path) -> None:
        self._run_path = run_path
        self._pending = ControlPoll(run_path)
        self._next_s = 0.0

    def poll(self, step: int) -> Request | None:  # noqa: ARG002 - the number of steps completed
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


class SharedControlWatch(ControlWatch):
    """Requests to several processes: the chief hears them, all obey after the same step.

    The others read a small file after each step, some 10 microseconds.
    """

    __slots__ = ("_agreed", "_board", "_chief")

    def __init__(self, run_path: Path, *, chief: bool) -> None:
        super().__init__(run_path)
        self._chief = chief
        self._board = StopBoard(run_path)
        self._agreed: tuple[int, Request] | None = None
        if chief:
            self._board.clear()

    def poll(self, step: int) -> Request | None:
        """The stop request, once its step has come."""
        if self._agreed is None:
            self._agreed = self._hear(step) if self._chief else self._board.read()
        if self._agreed is None or step < self._agreed[0]:
            return None
        return self._agreed[1]

    def _hear(self, step: int) -> tuple[int, Request] | None:
        request = super().poll(step)
        if request is None:
            return None
        self._board.write(step + 1, request)
        return step + 1, request

    def answer(self, request: Request, text: str) -> None:
        """Answer a stop request; the chief does, for all."""
        if self._chief:
            super().answer(request, text)
            self._agreed = None
            self._board.clear()
