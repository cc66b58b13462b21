"""Telling a process again by what was written down about it, whatever becomes of the clock meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

__all__ = ["ProcessMark", "number_space"]

_SAME_TIME_S: Final = 1.0
_SAME_TICK_S: Final = 0.05


def number_space() -> str:
    """Among whom numbers of processes count: on Linux a container has its own; ``""`` where none is told."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """What tells a process from a later one that was given the same number.

    Of the two times of its creation one is enough. On Linux the first one moves when the clock is set: the
    system keeps the second one. On other systems it is the other way round.
    """

    pid: int
    created_s: float = 0.0
    """Time of creation, s since the epoch; 0 when it is not known."""
    since_boot_s: float = 0.0
    """The same, s since the machine was started; 0 when it is not known."""

    @classmethod
    def own(cls) -> ProcessMark:
        """The mark of this process."""
        import psutil

        booted_s = psutil.boot_time()
        created_s = psutil.Process().create_time()
        return cls(os.getpid(), created_s, created_s - booted_s)

    def find(self) -> psutil.Process | None:
        """The process, or None when it has ended."""
        import psutil

        booted_s = psutil.boot_time()  # first: older versions of psutil count `create_time` from what it gave
        try:
            process = psutil.Process(self.pid)
        except (psutil.Error, ValueError, OverflowError):
            return None
        try:
            is_it = process.status() != psutil.STATUS_ZOMBIE and self._fits(process.create_time(), booted_s)
        except psutil.AccessDenied:  # somebody else's: alive, and nothing speaks against it
            return process
        except psutil.Error:
            return None
        return process if is_it else None

    def _fits(self, created_s: float, booted_s: float) -> bool:
        if not self.created_s and not self.since_boot_s:
            return True
        same_tick = abs(created_s - booted_s - self.since_boot_s) < _SAME_TICK_S
        return abs(created_s - self.created_s) < _SAME_TIME_S or (self.since_boot_s > 0 and same_tick)
