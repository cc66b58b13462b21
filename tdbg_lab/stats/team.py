"""The threads that torch computes with, borrowed between two of its operations.

Torch's OpenMP threads spin for a while after each operation: a thread of our own, started in a hook,
would wait for a core until they sleep. The threads that spin can as well do the work.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import torch

__all__ = ["Team", "torch_team"]


class Team:
    """The threads of an OpenMP library with the interface of GNU's.

    Parameters
    ----------
    library
        Loaded already by whoever made the threads: another copy of it would have threads of its own.

    Raises
    ------
    AttributeError
        If the library has another interface.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._parallel = library.GOMP_parallel
        self._parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        self._parallel.restype = None
        self._pid = os.getpid()

    @property
    def usable(self) -> bool:
        """Whether the threads are there: a forked child does not have those of its parent."""
        return os.getpid() == self._pid

    def run(self, function: int, argument: int, threads: int) -> None:
        """Call the native function at an address in `threads` threads at once; returns when all have.

        It runs without the GIL and takes the address `argument`.
        """
        self._parallel(function, argument, threads, 0)


@cache
def torch_team() -> Team | None:
    """The threads of torch in this process; None where torch brings no OpenMP library that we know."""
    try:
        (path,) = (Path(torch.__file__).parent / "lib").glob("libgomp*.so*")
        return Team(ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW))
    except (ValueError, OSError, AttributeError):
        return None
