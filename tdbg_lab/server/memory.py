"""Memory that was freed, given back to the system."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pyarrow as pa

__all__ = ["FreedMemory", "share_one_allocator"]

EVERY_S = 10.0
"""Between two returns: one takes some milliseconds and holds up whoever allocates. A dashboard of a run of
10,000 steps leaves a few megabytes a second."""


class FreedMemory:
    """Returns to the system what the allocators keep of freed memory, now and then.

    A figure takes many arrays of all sizes, in several threads, and leaves a few of them in caches. glibc
    gives a freed page back only from the end of a heap, and those few stand at the end: a server that
    follows a run for hours would grow although it holds no more than before.

    Parameters
    ----------
    every_s
        Shortest time between two returns, seconds.
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._returned_s = time.monotonic()
        self._trim = _malloc_trim()

    def give_back(self) -> bool:
        """Return it, if it is time to; whether it was."""
        now_s = time.monotonic()
        if now_s - self._returned_s < self._every_s:
            return False
        self._returned_s = now_s
        pa.default_memory_pool().release_unused()
        if self._trim is not None:
            self._trim(0)
        return True


def share_one_allocator() -> None:
    """Let Arrow take its memory from the C library, as everybody else in the process does.

    An allocator of Arrow's own, mimalloc as a rule, keeps what a thread has freed for that thread, and gives
    it back to the system only when the same thread tells it to. A dozen threads read and draw here: after
    7,000 steps it held 75 MB for 3 MB in use, and went on growing. What the C library keeps, `FreedMemory`
    returns for all threads.
    """
    pa.set_memory_pool(pa.system_memory_pool())


def _malloc_trim() -> Any:
    """``malloc_trim`` of glibc; None with another C library, which has none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # TypeError: Windows wants a name
        return None
