"""Units of time."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

import pandas as pd

from tdbg_lab.smdebug.exceptions import SMDebugValueError

__all__ = ["TimeUnits", "to_ns", "to_us", "to_us_since_epoch", "us_since_epoch_to_human_readable_time"]
_READABLE = "%Y-%m-%dT%H:%M:%S:%f"
_Time = TypeVar("_Time", int, pd.Series)


class TimeUnits(Enum):
    """What a time is counted in."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


_NS = {
    TimeUnits.SECONDS: 10**9,
    TimeUnits.MILLISECONDS: 10**6,
    TimeUnits.MICROSECONDS: 10**3,
    TimeUnits.NANOSECONDS: 1,
}


def to_ns(time: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> int:
    """A time since the epoch in ns."""
    return int(time * _NS[unit])


def to_us(time_ns: _Time) -> _Time:
    """Ns as the nearest us: what was written in us comes back as it was."""
    return (time_ns + 500) // 1000


def us_since_epoch_to_human_readable_time(us_since_epoch: int) -> str:
    """``2026-01-31T12:00:00:000000``, UTC."""
    return datetime.fromtimestamp(us_since_epoch / 1e6, UTC).strftime(_READABLE)


def to_us_since_epoch(time: int | str) -> int:
    """A time as us since the epoch; texts are what `us_since_epoch_to_human_readable_time` gives.

    Raises
    ------
    SMDebugValueError
        It is another text.
    """
    if not isinstance(time, str):
        return int(time)
    try:
        moment = datetime.strptime(time, _READABLE).replace(tzinfo=UTC)
    except ValueError:
        raise SMDebugValueError(
            f"{time!r} is no time; expected us since the epoch, or a text like '2026-01-31T12:00:00:000000'."
        ) from None
    return round(moment.timestamp() * 1e6)
