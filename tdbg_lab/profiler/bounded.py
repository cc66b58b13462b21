"""A question to something that may never answer, such as a driver that hangs."""

from __future__ import annotations

import queue
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from tdbg_lab.background import start_thread

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

__all__ = ["BoundedCall"]

T = TypeVar("T")


class BoundedCall(Generic[T]):
    """Makes one call again and again, in a daemon thread of its own, and never waits longer than it is told.

    While a call is under way no other one is begun, and what it answers too late is thrown away: an answer
    is always one to the last `ask`. `ask` and `answer` belong to one thread.

    Parameters
    ----------
    call
        What is called.
    name
        Of the thread.
    """

    def __init__(self, call: Callable[[], T], name: str) -> None:
        self._call = call
        self._name = name
        self._thread: threading.Thread | None = None
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        self._under_way = False
        self._late = False
        self._close = weakref.finalize(self, self._asked.put, False)

    def ask(self) -> bool:
        """Begin a call, unless the last one still hangs; False where no thread may be started for it."""
        if self._late:
            try:
                self._answers.get_nowait()
            except queue.Empty:
                return True
            self._under_way = self._late = False
        if self._thread is None:
            self._thread = start_thread(partial(_run, self._call, self._asked, self._answers), self._name)
        if self._thread is None:
            return False
        if not self._under_way:
            self._under_way = True
            self._asked.put(True)
        return True

    def answer(self, until_s: float) -> tuple[T] | None:
        """What the call gave, in a tuple; None when it did not come by `until_s`, `time.monotonic`.

        Raises
        ------
        Exception
            What the call raised.
        """
        if self._late or not self._under_way:
            return None
        try:
            value, error = self._answers.get(timeout=max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            self._late = True
            return None
        self._under_way = False
        if error is not None:
            raise error
        return (value,)  # type: ignore[return-value]

    def once(self, limit_s: float) -> tuple[T] | None:
        """Call it once, and end; raises as `answer`."""
        self.ask()
        try:
            return self.answer(time.monotonic() + limit_s)
        finally:
            self.close()

    def close(self) -> None:
        """End the thread, as soon as its call returns; it ends with this object, too."""
        self._close()


def _run(
    call: Callable[[], T],
    asked: queue.SimpleQueue[bool],
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]],
) -> None:
    while asked.get():
        try:
            answers.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised again by `answer`
            answers.put((None, error))
