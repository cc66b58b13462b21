"""Short turns at the interpreter while a figure is drawn."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ShortTurns"]

TURN_S = 0.0005
"""A thread that waits for the interpreter gets it after this time; Python's own is ten times as long."""


class ShortTurns:
    """While something is computed in ``with`` blocks, the other threads wait less for the interpreter.

    Reading what a run has written is a few dozen calls of the system. Each gives the interpreter away, and
    a thread that draws keeps it for a whole turn: with Python's turns of 5 ms the news of a step would come
    later than 100 ms, however little there is to read.

    Parameters
    ----------
    turn_s
        Length of a turn, seconds. A shorter one that somebody has set stays.
    """

    def __init__(self, turn_s: float = TURN_S) -> None:
        self._turn_s = turn_s
        self._lock = threading.Lock()
        self._inside = 0
        self._before_s = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before_s = sys.getswitchinterval()
                sys.setswitchinterval(min(self._turn_s, self._before_s))

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._before_s)
