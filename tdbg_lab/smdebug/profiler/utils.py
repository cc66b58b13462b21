"""Units of time."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

import pandas as pd

from tdbg_lab.smdebug.exceptions import SMDebugValueError

__all__ = [
    "TimeUnits",
    "convert_utc_datetime_to_microseconds",
    "convert_utc_datetime_to_nanoseconds",
    "convert_utc_timestamp_to_microseconds",
    "convert_utc_timestamp_to_nanoseconds",
    "convert_utc_timestamp_to_seconds",
    "ns_since_epoch_to_human_readable_time",
    "to_ns",
    "to_us",
    "to_us_since_epoch",
    "us_since_epoch_to_human_readable_time",
]
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
    """A time since the epoch in ns; one with a fraction to the us, which is what a double holds of it."""
    if isinstance(time, int):
        return time * _NS[unit]
    return round(time * _NS[unit] / 1000) * 1000


def to_us(time_ns: _Time) -> _Time:
    """Ns as the nearest us: what was written in us comes back as it was."""
    return (time_ns + 500) // 1000


def convert_utc_timestamp_to_nanoseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> int:
    """A time since the epoch in ns."""
    return to_ns(timestamp, unit)


def convert_utc_timestamp_to_microseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> int:
    """A time since the epoch in us, cut off."""
    return to_ns(timestamp, unit) // 1000


def convert_utc_timestamp_to_seconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> int:
    """A time since the epoch in s, cut off."""
    return to_ns(timestamp, unit) // 10**9


def convert_utc_datetime_to_nanoseconds(timestamp_datetime: datetime) -> int:
    """A moment in ns since the epoch."""
    return convert_utc_datetime_to_microseconds(timestamp_datetime) * 1000


def convert_utc_datetime_to_microseconds(timestamp_datetime: datetime) -> int:
    """A moment in us since the epoch; one without a time zone is local, as everywhere in Python."""
    return round(timestamp_datetime.timestamp() * 1e6)


def ns_since_epoch_to_human_readable_time(ns_since_epoch: int) -> str:
    """As `us_since_epoch_to_human_readable_time`."""
    return us_since_epoch_to_human_readable_time(ns_since_epoch / 1e3)


def us_since_epoch_to_human_readable_time(us_since_epoch: float) -> str:
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
