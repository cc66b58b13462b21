"""Intervals from one timeline at a time: Chrome trace events, as the predecessor's profiler wrote them."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.profiler.utils import TimeUnits, to_ns
from tdbg_lab.store.json_stream import BrokenTraceError, TraceStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

__all__ = ["ProcessInfo", "ThreadInfo", "TraceEvent", "TraceEventParser"]


@dataclass(slots=True)
class ThreadInfo:
    """A line of a timeline."""

    tid: int
    thread_name: str


@dataclass(slots=True)
class ProcessInfo:
    """A phase of training: what a timeline calls a process."""

    id: int
    name: str
    threads: dict[int, ThreadInfo] = field(default_factory=dict)

    def add_thread(self, threadid: int, thread_name: str) -> None:
        """Name a line, unless it has a name."""
        self.threads.setdefault(threadid, ThreadInfo(threadid, thread_name))

    def get_thread_info(self, threadid: int) -> ThreadInfo:
        """A line.

        Raises
        ------
        KeyError
            If there is none of that number.
        """
        return self.threads[threadid]


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One interval."""

    event_name: str
    event_phase: str
    start_time: int
    """us since the epoch."""
    end_time: int
    """us since the epoch."""
    pid: int
    """Number of the process; of a run's phases its rank."""
    tid: int
    node_id: str
    event_args: dict[str, Any] = field(default_factory=dict)
    phase: str = "X"
    """The letter that Chrome's trace format has for an interval."""
    phase_pid: int = 0
    """Number that a timeline has for the phase."""
    phase_tid: int = 0
    """Number that a timeline has for the line of the phase."""
    file_type: str = ""
    """``PythontimelineMetrics`` and the like; empty where no timeline was read."""
    process_info: ProcessInfo | None = None

    @property
    def duration(self) -> int:
        """Us."""
        return self.end_time - self.start_time

    def to_json(self) -> str:
        """As an event of a Chrome trace."""
        event = {
            "name": self.event_name,
            "pid": self.pid,
            "tid": self.tid,
            "ph": self.phase,
            "ts": self.start_time,
            "dur": self.duration,
        }
        return json.dumps({**event, "args": self.event_args} if self.event_args else event)


class TraceEventParser:
    """Keeps the intervals of all timelines that it was given.

    Parameters
    ----------
    type
        What its intervals say they come from.
    """

    def __init__(self, type: str = "") -> None:  # noqa: A002 - the predecessor's name
        self.type = type
        self.logger = get_logger()
        self._processes: dict[int, ProcessInfo] = {}
        self._events: list[TraceEvent] = []
        self._open: dict[int, list[Mapping[str, Any]]] = {}
        self._base_us = 0

    def read_events_from_file(self, tracefile: str | Path) -> None:
        """Read a timeline, also one that is still being written; what cannot be read is logged."""
        path = Path(tracefile)
        node, broken = _node_of(path), 0
        try:
            for event in TraceStream(path).events():
                broken += not self._take(event, node)
        except (BrokenTraceError, OSError) as error:
            self.logger.warning("Trace file %s is read in part: %s", path, error)
        if broken:
            self.logger.warning("Trace file %s: %d events are left out; they lack a part.", path, broken)

    def read_events_from_json_data(self, trace_json_data: Iterable[Mapping[str, Any]], node_id: str) -> None:
        """Take events as they stand in a timeline, parsed."""
        for event in trace_json_data:
            self._take(event, node_id)

    def get_all_events(self) -> list[TraceEvent]:
        """All intervals, in the order of the timelines."""
        return self._events

    def get_events_start_time_sorted(self) -> list[TraceEvent]:
        """All intervals by when they began."""
        return sorted(self._events, key=lambda event: event.start_time)

    def get_events_end_time_sorted(self) -> list[TraceEvent]:
        """All intervals by when they ended."""
        return sorted(self._events, key=lambda event: event.end_time)

    def get_events_within_time_range(
        self, start_time: float, end_time: float, unit: TimeUnits = TimeUnits.MICROSECONDS
    ) -> list[TraceEvent]:
        """Intervals that go on at any moment between two times since the epoch."""
        first, last = to_ns(start_time, unit) // 1000, to_ns(end_time, unit) // 1000
        return [event for event in self._events if event.end_time >= first and event.start_time <= last]

    def get_events_within_range(self, start_time: datetime, end_time: datetime) -> list[TraceEvent]:
        """The same for two moments; those without a time zone are local."""
        return self.get_events_within_time_range(
            start_time.timestamp(), end_time.timestamp(), TimeUnits.SECONDS
        )

    def get_processes(self) -> dict[int, ProcessInfo]:
        """The phases, by their numbers."""
        return self._processes

    def get_process_info(self, process_id: int) -> ProcessInfo:
        """A phase.

        Raises
        ------
        KeyError
            If there is none of that number.
        """
        return self._processes[process_id]

    def clear_events(self) -> None:
        """Forget all intervals."""
        self._events = []

    def _take(self, event: Mapping[str, Any], node: str) -> bool:
        """Take one event in; False when it lacks a part."""
        try:
            kind = event.get("ph")
            if kind == "M":
                self._describe(event, node)
            elif kind == "X":
                self._events.append(self._interval(event, event["dur"], event.get("args"), node))
            elif kind == "B":
                self._open.setdefault(event["pid"], []).append(event)
            elif kind == "E" and self._open.get(event["pid"]):
                began = self._open[event["pid"]].pop()
                args = event.get("args")
                self._events.append(self._interval(began, event["ts"] - began["ts"], args, node))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return False
        return True

    def _describe(self, event: Mapping[str, Any], node: str) -> None:
        args, pid = event.get("args") or {}, event["pid"]
        self._base_us = int(args.get("start_time_since_epoch_in_micros", self._base_us))
        if event["name"] == "process_name":
            name = str(args.get("name", "Unknown"))
            known = (one for one in self._processes.values() if one.name == name)
            self._processes[pid] = next(known, None) or ProcessInfo(pid, name)  # of several nodes: one phase
        elif event["name"] == "thread_name":
            self._process(pid).add_thread(event["tid"], f"{node}_{args['name']}")

    def _interval(self, event: Mapping[str, Any], duration: float, args: Any, node: str) -> TraceEvent:
        process, thread = self._process(event["pid"]), event.get("tid", 0)
        if duration < 0:
            raise ValueError("an interval ends before it begins")
        if thread not in process.threads:  # a line for each node
            name = f"{node}_{thread}"
            thread = zlib.crc32(f"{name} {process.name}".encode())
            process.add_thread(thread, name)
        start = event["ts"] + self._base_us
        told = args if isinstance(args, dict) else {}
        return TraceEvent(
            event_name=str(event["name"]),
            event_phase=process.name,
            start_time=start,
            end_time=start + duration,
            pid=told.get("pid", event["pid"]),
            tid=told.get("thread_id", thread),
            node_id=_by_machine(node),
            event_args=told,
            phase_pid=event["pid"],
            phase_tid=thread,
            file_type=self.type,
            process_info=process,
        )

    def _process(self, pid: int) -> ProcessInfo:
        return self._processes.setdefault(pid, ProcessInfo(pid, "Unknown"))


def _node_of(path: Path) -> str:
    """The node in ``<us>_<node>_pythontimeline.json``, also without the time."""
    parts = path.name.split("_")
    return parts[1] if len(parts) > 2 and parts[0].isdigit() else parts[0] if len(parts) > 1 else ""


def _by_machine(node: str) -> str:
    """``algo-1-26002`` for ``26002-algo-1``: nodes sort by machine, then by process."""
    process, dash, machine = node.partition("-algo")
    return f"algo{machine}-{process}" if dash else node
