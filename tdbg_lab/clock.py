"""Time that nobody sets: records of a run go on evenly where the clock of its machine is set meanwhile."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EvenClock", "since_boot_ns"]

since_boot_ns: Callable[[], int] = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic_ns
)
"""Time that has passed, sleep of the machine included where the system tells (Linux does), ns."""


class EvenClock:
    """Asks the wall clock once, when it is made, and goes on by itself.

    Whoever writes records has one: their times never jump.
    """

    __slots__ = ("_epoch_ns",)

    def __init__(self) -> None:
        self._epoch_ns = time.time_ns() - since_boot_ns()

    def now_ns(self) -> int:
        """Time since 1970, ns."""
        return self._epoch_ns + since_boot_ns()
