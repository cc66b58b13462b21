"""System metrics from one file at a time: JSON objects, one a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.profiler.utils import TimeUnits, to_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ProfilerSystemEvent", "ProfilerSystemEvents", "SystemProfilerEventParser"]


@dataclass(slots=True)
class ProfilerSystemEvent:
    """One reading."""

    type: str
    """``cpu``, ``gpu``, ``memory``, ``i/o`` or ``network``."""
    name: str | None
    """Of the device: ``cpu0``, ``gpu1``."""
    dimension: str
    value: float
    node_id: str
    timestamp: float
    """Seconds since the epoch."""


class SystemProfilerEventParser:
    """Keeps the readings of all files that it was given."""

    def __init__(self) -> None:
        self._events: list[ProfilerSystemEvent] = []

    def read_events_from_file(self, eventfile: str | Path) -> None:
        """Read a file; a last line that is still being written is left out.

        Raises
        ------
        SMDebugValueError
            If a line before is no reading.
        """
        path = Path(eventfile)
        with path.open(encoding="utf-8", errors="replace") as file:
            broken: str | None = None
            for number, line in enumerate(file, 1):
                if broken is not None:
                    raise SMDebugValueError(broken)
                try:
                    self.read_event_from_dict(json.loads(line))
                except (ValueError, RecursionError) as error:
                    broken = f"Line {number} of {path.name} is no reading of system metrics: {error}"

    def read_events_from_json_data(self, system_profiler_json_data: Iterable[Mapping[str, Any]]) -> None:
        """Take readings as they stand in a file, parsed."""
        for event in system_profiler_json_data:
            self.read_event_from_dict(event)

    def read_event_from_dict(self, event: Mapping[str, Any]) -> None:
        """Take one reading.

        Raises
        ------
        SMDebugValueError
            If it is none.
        """
        try:
            taken = ProfilerSystemEvent(
                event["Type"],
                event.get("Name"),
                event["Dimension"],
                event["Value"],
                event["NodeId"],
                float(event["Timestamp"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise SMDebugValueError(
                f"{event!r:.80} is no reading; expected Type, Name, Dimension, Value, NodeId and Timestamp."
            ) from None
        self._events.append(taken)

    def get_events_within_time_range(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Readings between two times since the epoch, both inclusive; of one type when it is given."""
        first, last = to_ns(start_time, unit), to_ns(end_time, unit)
        return [
            event
            for event in self._events
            if first <= to_ns(event.timestamp, TimeUnits.SECONDS) <= last and event_type in {None, event.type}
        ]

    def get_all_events(self) -> list[ProfilerSystemEvent]:
        """All readings, in the order of the files."""
        return self._events

    def clear_events(self) -> None:
        """Forget all readings."""
        self._events = []


class ProfilerSystemEvents(SystemProfilerEventParser):
    """The name under which readers of the predecessor held it."""
