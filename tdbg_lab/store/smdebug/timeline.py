"""Timelines that smdebug's profiler wrote: Chrome trace events, also of a file that is still open.

One event a line, in a JSON array that is closed only at the end. The first event tells when time
began; each phase of training is a "process" that an event of its own gives a name.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from tdbg_lab.store.limits import MAX_NAME_CHARS
from tdbg_lab.store.smdebug.bounds import MAX_SPANS

__all__ = ["Span", "Timeline", "phase_of"]

_PHASES = (
    (re.compile(r"(?i)forward"), "forward"),
    (re.compile(r"(?i)backward"), "backward"),
    (re.compile(r"(?i)data(loader|iter)"), "data"),
    (re.compile(r"(?i)optimizer"), "optimizer"),
    (re.compile(r"(?i)step:modekeys\.(eval|predict)"), "eval"),
)
_US_LIMIT = 2**53


class Span(NamedTuple):
    """One interval of time."""

    name: str
    phase: str
    start_ns: int
    duration_ns: int
    step: int
    """Mode step; -1 when it is not known."""
    thread: int


def phase_of(name: str) -> str:
    """The phase of training in our words, else as it is called."""
    return next((phase for pattern, phase in _PHASES if pattern.match(name)), name)


class Timeline:
    """Takes in the text of one file piece by piece, as it grows."""

    def __init__(self) -> None:
        self.broken = 0
        """Lines that are no event."""
        self._base_us = 0
        self._processes: dict[int, str] = {}
        self._open: dict[tuple[int, int], list[tuple[str, float]]] = {}
        self._rest = b""

    def feed(self, data: bytes, *, last: bool = False) -> list[Span]:
        """Spans that end in a further piece; `last` when the file is whole."""
        lines = (self._rest + data).split(b"\n")
        self._rest = b"" if last else lines.pop()
        if len(lines) == 1 and last:  # not written by smdebug: all in one line
            return self._array(lines[0])
        found: list[Span] = []
        for line in lines:
            text = line.strip().rstrip(b",").strip()
            if text in {b"", b"[", b"]"} or len(found) >= MAX_SPANS:
                continue
            try:
                span = self._event(json.loads(text.removeprefix(b"[").removesuffix(b"]")))
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
                self.broken += 1
                continue
            if span is not None:
                found.append(span)
        return found

    def _array(self, line: bytes) -> list[Span]:
        try:
            events = json.loads(line)
            events = events.get("traceEvents", []) if isinstance(events, dict) else events
            spans = [self._event(event) for event in events[:MAX_SPANS]]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            self.broken += 1
            return []
        return [span for span in spans if span is not None]

    def _event(self, event: Any) -> Span | None:
        kind, args = event["ph"], event.get("args") or {}
        pid, thread = _whole(event.get("pid", 0)), _whole(event.get("tid", 0))
        name = str(event.get("name", ""))[:MAX_NAME_CHARS]
        if kind == "M":
            if name == "process_name":
                base = args.get("start_time_since_epoch_in_micros")
                self._base_us = self._base_us if base is None else _whole(base)
                self._processes[pid] = str(args.get("name", ""))[:MAX_NAME_CHARS]
            return None
        if kind == "B":
            self._open.setdefault((pid, thread), []).append((name, float(event["ts"])))
            return None
        if kind == "E":
            began = self._open.get((pid, thread))
            if not began:
                return None
            name, start = began.pop()
            return self._span(name, (pid, thread), (start, float(event["ts"]) - start), args)
        if kind != "X":
            return None
        times = float(event["ts"]), float(event.get("dur", 0))
        return self._span(name, (pid, thread), times, args)

    def _span(self, name: str, line: tuple[int, int], times_us: tuple[float, float], args: Any) -> Span:
        start_us, duration_us = times_us
        if not (0 <= duration_us < _US_LIMIT and abs(start_us) < _US_LIMIT):
            raise ValueError("an event has an impossible time")
        phase = self._processes.get(line[0]) or name
        step = str(args.get("step_num", -1))
        return Span(
            name or phase,
            phase_of(phase),
            round((self._base_us + start_us) * 1000),
            round(duration_us * 1000),
            int(step) if step.isdigit() and len(step) < 19 else -1,
            line[1],
        )


def _whole(value: Any) -> int:
    """A number; what is text or too large becomes 0: ids only tell lines apart."""
    number = int(value) if isinstance(value, (int, float)) else 0
    return number if abs(number) < 2**62 else 0
