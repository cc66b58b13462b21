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
LARGE_BYTES = 2**20
"""Blocks of this size on do not come from a heap. Smaller ones come often: with 256 KiB drawing takes a fifth
longer."""
MOST_HEAPS = 2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
"""Numbers of glibc's <malloc.h>."""


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
        self._trim = _of_glibc("malloc_trim")

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

    Of glibc, large blocks are taken from the system one by one, and go back as soon as they are freed; by
    itself it would learn from the first of them to keep all up to 32 MB in its heaps, of which each thread
    may get one. While two threads draw eight views of 24,000 steps, that is 524 instead of 654 MB at most.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_ARENA_MAX, MOST_HEAPS)


def _of_glibc(name: str) -> Any:
    """A function of glibc's allocator; None with another C library, which has none of that name."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):  # TypeError: Windows wants a name
        return None
