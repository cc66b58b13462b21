"""An action at work: in a thread of its own, so that neither rules nor other actions wait for it."""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.background import start_thread

if TYPE_CHECKING:
    from tdbg_lab.actions import Action, ActionContext
    from tdbg_lab.records import Finding

__all__ = ["Failure", "Worker"]

log = logging.getLogger(__name__)

_MAX_WAITING = 16
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_MAX_CHARS = 500
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that was not performed as it should have been."""

    action: str
    finding: Finding
    message: str
    """One sentence, without addresses: they may hold secrets."""


class Worker:
    """Performs one action for one finding after the other.

    An action that takes longer than its time limit is left to itself, and not asked again: a thread
    cannot be ended. The process does not wait for it.
    """

    def __init__(self, action: Action, context: ActionContext) -> None:
        self.action = action
        self._context = context
        self._queue: queue.Queue[Finding] = queue.Queue(_MAX_WAITING)
        self._lock = threading.Lock()
        self._failures: list[Failure] = []
        self._busy: tuple[Finding, float] | None = None
        """What is being done, and since when, s of `time.monotonic`."""
        self._waiting = 0
        self._thread: threading.Thread | None = None
        self.hangs = False

    def ask(self, finding: Finding) -> None:
        """Perform the action soon."""
        if self.hangs:
            return
        if self._thread is None:
            self._thread = start_thread(self._work, f"tdbg-{type(self.action).__name__}")
        if self._thread is None:
            self._fail(finding, "no more threads may be started")
            return
        try:
            self._queue.put_nowait(finding)
        except queue.Full:
            self._fail(finding, f"{_MAX_WAITING} findings wait for it already; this one is passed over")
            return
        with self._lock:
            self._waiting += 1

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do, or nothing more will be done."""
        with self._lock:
            return self.hangs or not self._waiting

    def failures(self) -> list[Failure]:
        """What failed since the last call; an action that hangs is given up here."""
        busy = self._overdue()
        if busy is not None and not self.hangs:
            self.hangs = True
            self._fail(busy, f"it took longer than {self.action.timeout_s:g} s and is not asked again")
        with self._lock:
            found, self._failures = self._failures, []
        return found

    def wait(self, deadline_s: float) -> None:
        """Wait until nothing is left to do, it hangs, or `deadline_s` (of `time.monotonic`) has come."""
        while not self.idle and self._overdue() is None and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)

    def _overdue(self) -> Finding | None:
        """The finding whose time is over.

        An action that keeps its time limit itself is given a moment to say so.
        """
        limit_s = self.action.timeout_s + min(2.0, 0.5 * self.action.timeout_s)
        with self._lock:
            busy = self._busy
        return busy[0] if busy is not None and time.monotonic() - busy[1] > limit_s else None

    def _work(self) -> None:
        while True:
            finding = self._queue.get()
            with self._lock:
                self._busy = (finding, time.monotonic())
            try:
                self.action.perform(finding, self._context)
            except BaseException as error:
                log.debug("%s failed", type(self.action).__name__, exc_info=True)
                self._fail(finding, str(error) or type(error).__name__)
            finally:
                with self._lock:
                    self._busy = None
                    self._waiting -= 1

    def _fail(self, finding: Finding, why: str) -> None:
        message = _URL.sub("(address)", " ".join(why.split()))[:_MAX_CHARS]
        with self._lock:
            self._failures.append(Failure(type(self.action).__name__, finding, message))
