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
        self.address: int = ctypes.cast(library.GOMP_parallel, ctypes.c_void_p).value or 0
        """Of the native function that lets them work, see `tdbg_lab.stats.jit.call_in_threads`."""
        self._pid = os.getpid()

    @property
    def usable(self) -> bool:
        """Whether the threads are there: a forked child does not have those of its parent."""
        return os.getpid() == self._pid


@cache
def torch_team() -> Team | None:
    """The threads of torch in this process; None where torch brings no OpenMP library that we know."""
    try:
        (path,) = (Path(torch.__file__).parent / "lib").glob("libgomp*.so*")
        return Team(ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW))
    except (ValueError, OSError, AttributeError):
        return None
