"""What a probe is: something that reads metrics of one part of the machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Probe", "Rate", "Reading"]


class Reading(NamedTuple):
    """One value of one metric of one device."""

    metric: str
    device: str
    value: float


class Probe(Protocol):
    """Reads metrics. What cannot be read is left out, never raised."""

    def read(self) -> Iterable[Reading]:
        """Read every metric once."""


class Rate:
    """Change per second of a counter that only grows."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def update(self, count: float, now_s: float | None = None) -> float | None:
        """Change per second since the last update; None at the first one, 0 after a wrap."""
        now_s = time.monotonic() if now_s is None else now_s
        last, self._last = self._last, (now_s, count)
        if last is None or now_s <= last[0]:
            return None
        return max(0.0, (count - last[1]) / (now_s - last[0]))
