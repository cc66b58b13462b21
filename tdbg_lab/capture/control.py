"""Requests to the training process: polled at step boundaries, answered in place.

Several processes must act after the same step: with a stop the one that goes on would wait for the
others for ever, with another learning rate they would drift apart. The chief hears the request at
the end of a step, writes into the run directory that everybody follows it at the end of the next one,
and only then takes part in that step's exchange of gradients. So whoever comes out of that exchange
finds it written; and it stays written for one more exchange, so nobody comes too late.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.profiler.window import PROFILE
from tdbg_lab.store import ControlPoll, Request, RequestBoard, answer
from tdbg_lab.store.outage import Outage
from tdbg_lab.store.settings import SET

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["REQUESTS", "ControlWatch", "SharedControlWatch"]

REQUESTS = ("stop", SET, PROFILE)
"""Kinds of requests that a handle follows."""
_INTERVAL_S = 0.2


class ControlWatch:
    """Looks for requests, at most every 0.2 s.

    Parameters
    ----------
    kinds
        Kinds of requests that the training can follow; others are refused.
    """

    def __init__(self, run_path: Path, *, kinds: tuple[str, ...] = ("stop",)) -> None:
        self._run_path = run_path
        self._kinds = kinds
        self._pending = ControlPoll(run_path)
        self._next_s = 0.0
        self._answered: set[str] = set()
        self._unsaid: dict[str, tuple[Any, str, dict[str, Any] | None]] = {}
        """Answers that could not be written yet, by the id of the request: a disk may be full."""
        self._outage = Outage()

    def due(self) -> bool:
        """Whether it is time to look."""
        return monotonic() >= self._next_s

    def poll(self, step: int) -> Request | None:  # noqa: ARG002 - the number of steps completed
        """The oldest request to follow, if there is one."""
        if not ControlWatch.due(self):
            return None
        self._next_s = monotonic() + _INTERVAL_S
        self._say()
        for request in self._pending():
            if request.id in self._answered:
                continue
            if request.kind in self._kinds:
                return request
            self._answered.add(request.id)
            self._unsaid[request.id] = ("refused", f"training does not know {request.kind!r}", None)
            self._say()
        return None

    def answer(self, request: Request, text: str, result: dict[str, Any] | None = None) -> None:
        """Say that a request was followed, and how."""
        self._answer(request, "done", text, result)

    def look_now(self) -> None:
        """Look at the end of this step, however short ago the last look was."""
        self._next_s = 0.0

    def accept(self, request: Request) -> None:
        """Take up a request that is answered later, so that others are heard meanwhile."""
        self._answered.add(request.id)
        self._next_s = 0.0

    def refuse(self, request: Request, text: str) -> None:
        """Say why a request was not followed."""
        self._answer(request, "refused", text)

    def _answer(self, request: Request, state: Any, text: str, result: dict[str, Any] | None = None) -> None:
        self._answered.add(request.id)  # even if the answer cannot be written: nothing is done twice
        self._next_s = 0.0  # there may be more of them
        self._unsaid[request.id] = (state, text, result)
        self._say()

    def _say(self) -> None:
        """Write what was not written yet, now and then while that fails."""
        for identity, (state, text, result) in list(self._unsaid.items()):
            if self._outage.blocks:
                return
            try:
                answer(self._run_path, identity, state, text, result=result)
                if self._outage.reason is not None:
                    self._outage.end("answers")
            except NotFoundError:  # somebody took it back
                pass
            except StoreError as error:
                self._outage.begin(str(error))
                return
            del self._unsaid[identity]


class SharedControlWatch(ControlWatch):
    """Requests to several processes: the chief hears them, all obey after the same step.

    The others read a small file after each step, some 10 microseconds.
    """

    def __init__(self, run_path: Path, *, chief: bool, kinds: tuple[str, ...] = ("stop",)) -> None:
        super().__init__(run_path, kinds=kinds)
        self._chief = chief
        self._board = RequestBoard(run_path)
        self._agreed: tuple[int, Request] | None = None
        if chief:
            self._board.clear()

    def due(self) -> bool:
        """The others look after each step; the chief, too, as it may hold a request for a later one."""
        return True

    def poll(self, step: int) -> Request | None:
        """The request to follow, once its step has come."""
        if self._agreed is None:
            self._agreed = self._hear(step) if self._chief else self._look()
        if self._agreed is None or step < self._agreed[0]:
            return None
        return self._agreed[1]

    def _hear(self, step: int) -> tuple[int, Request] | None:
        request = super().poll(step)
        if request is None:
            return None
        self._board.write(step + 1, request)
        return step + 1, request

    def accept(self, request: Request) -> None:
        """Take up a request that is answered later."""
        self._agreed = None
        super().accept(request)

    def _look(self) -> tuple[int, Request] | None:
        found = self._board.read()
        return None if found is None or found[1].id in self._answered else found

    def _answer(self, request: Request, state: Any, text: str, result: dict[str, Any] | None = None) -> None:
        """Answer a request; the chief does, for all. The board stays: others may not have read it yet."""
        self._agreed = None
        if self._chief:
            super()._answer(request, state, text, result)
        else:
            self._answered.add(request.id)
