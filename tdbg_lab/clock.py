"""Time that nobody sets: records of a run go on evenly where the clock of its machine is set meanwhile."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["epoch_ns", "since_boot_ns"]

since_boot_ns: Callable[[], int] = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic_ns
)
"""Time that has passed, sleep of the machine included where the system tells (Linux does), ns."""


def epoch_ns() -> int:
    """What to add to `since_boot_ns` for the time since 1970, as the clock shows it now.

    Whoever writes records asks once, when it begins: times of records then never jump.
    """
    return time.time_ns() - since_boot_ns()
