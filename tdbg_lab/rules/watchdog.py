"""Work that may hang, done on a thread that can be given up."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Overdue", "Task", "Watchdog"]


class Overdue(Exception):  # noqa: N818 - an event, not a failure
    """Raised in a thread that was given up, so that a loop in Python ends."""


class Task(Protocol):
    """One piece of work of somebody else's making."""

    limit_s: float
    """Time it may take, s."""

    def work(self) -> Any:
        """What may raise or hang."""

    def done(self, result: Any) -> None:
        """Take the result of `work`, or the exception it raised; not called when it was overdue."""

    def overdue(self) -> None:
        """It took longer than its limit and was given up."""


class Watchdog:
    """Does tasks one after the other on a thread of its own; one that hangs costs its thread, no more.

    A thread cannot be killed: a loop in Python is ended by an exception, a call that never comes back
    keeps its (daemon) thread until the process ends. The tasks after it are done by another thread.
    """

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def run(self, tasks: Sequence[Task]) -> None:
        """Do all tasks in order; comes back when each is done or given up."""
        round_ = _Round(tasks)
        while not round_.finished.is_set():
            if self._worker is None:
                try:
                    self._worker = _Worker()
                except RuntimeError:  # no more threads may be started: done here, for as long as it takes
                    with np.errstate(all="ignore"):
                        round_.work(self)
                    return
            self._worker.take(round_)
            while not round_.finished.wait(round_.left_s()):
                late = round_.give_up()
                if late is not None:
                    self._worker.abandon()
                    self._worker = None
                    late.overdue()
                    break

    def close(self) -> None:
        """Let the thread end. Idempotent."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


class _Round:
    """Tasks of one call, claimed one by one."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._lock = threading.Lock()
        self._next = 0
        self._begun_s = 0.0
        self._owner: object = None
        self.finished = threading.Event()
        if not tasks:
            self.finished.set()

    def work(self, me: object) -> None:
        """Do what is left, unless it is given to somebody else meanwhile."""
        with self._lock:
            self._owner = me
        while (task := self._claim(me)) is not None:
            try:
                result = task.work()
            except BaseException as error:  # noqa: BLE001 - whatever it raises, SystemExit too
                result = error
            with self._lock:
                if self._owner is not me:
                    return
                task.done(result)

    def left_s(self) -> float:
        """Time until the task at work is overdue, s."""
        with self._lock:
            if not self._begun_s:
                return 1.0
            limit_s = self._tasks[max(0, self._next - 1)].limit_s
            return max(0.01, self._begun_s + limit_s - time.monotonic())

    def give_up(self) -> Task | None:
        """Take the work away from its thread when its task is overdue; gives that task."""
        with self._lock:
            if self.finished.is_set() or not self._begun_s:
                return None
            task = self._tasks[self._next - 1]
            if time.monotonic() - self._begun_s < task.limit_s:
                return None
            self._owner = None
            self._begun_s = 0.0
            if self._next == len(self._tasks):
                self.finished.set()
            return task

    def _claim(self, me: object) -> Task | None:
        with self._lock:
            if self._owner is not me:
                return None
            if self._next == len(self._tasks):
                self.finished.set()
                return None
            self._next += 1
            self._begun_s = time.monotonic()
            return self._tasks[self._next - 1]


class _Worker:
    """A thread that waits for rounds."""

    def __init__(self) -> None:
        self._round: _Round | None = None
        self._wanted = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name="tdbg-rules-check", daemon=True)
        self._thread.start()

    def take(self, round_: _Round) -> None:
        self._round = round_
        self._wanted.release()

    def stop(self) -> None:
        self._round = None
        self._wanted.release()

    def abandon(self) -> None:
        """Ask the thread to end as soon as it runs Python code again."""
        self.stop()
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(Overdue)
            )

    def _run(self) -> None:
        try:
            with np.errstate(all="ignore"):  # NaN in the data is no news to a rule
                self._serve(self._wanted.acquire)
        except Overdue:
            return

    def _serve(self, wait: Callable[[], bool]) -> None:
        while wait():
            round_ = self._round
            if round_ is None:
                return
            round_.work(self)
