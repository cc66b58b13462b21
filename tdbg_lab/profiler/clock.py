"""Whether the machine slept, and whether somebody set its clock: a run's times then differ from a watch's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tdbg_lab.clock import since_boot_ns
from tdbg_lab.profiler.probe import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ClockProbe"]

_LEAST_NS = 1_000_000_000


class ClockProbe:
    """Readings at the first moment after it happened, and none else.

    =============  =======  ================================================================
    metric         device   value
    =============  =======  ================================================================
    suspended_s    clock    seconds the machine slept, where the system tells (Linux does)
    clock_jump_s   clock    seconds the clock was set forward, or back (negative)
    =============  =======  ================================================================

    Parameters
    ----------
    wall, awake, since_boot
        Clocks, ns: what a watch shows, time without sleep, and time with it; for tests.
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        awake: Callable[[], int] = time.monotonic_ns,
        since_boot: Callable[[], int] = since_boot_ns,
    ) -> None:
        self._wall = wall
        self._awake = awake
        self._since_boot = since_boot
        self._asleep_ns, self._offset_ns = self._look()

    def read(self) -> Iterator[Reading]:
        """What changed by a second or more since the last reading."""
        asleep_ns, offset_ns = self._look()
        slept_ns, jumped_ns = asleep_ns - self._asleep_ns, offset_ns - self._offset_ns
        self._asleep_ns, self._offset_ns = asleep_ns, offset_ns
        if slept_ns >= _LEAST_NS:
            yield Reading("suspended_s", "clock", slept_ns / 1e9)
        if abs(jumped_ns) >= _LEAST_NS:
            yield Reading("clock_jump_s", "clock", jumped_ns / 1e9)

    def _look(self) -> tuple[int, int]:
        """Time asleep since boot, and what the clock is ahead of the time since boot."""
        since_boot = self._since_boot()
        return since_boot - self._awake(), self._wall() - since_boot
