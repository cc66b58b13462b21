"""Reads traces of torch.profiler, and other Chrome traces, as a run: spans and counters."""

from __future__ import annotations

import math
import re
from array import array
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import ConfigError
from tdbg_lab.exchange.building import begin, finish
from tdbg_lab.store import RankWriter, SystemWriter
from tdbg_lab.store.json_stream import BrokenTraceError, TraceStream
from tdbg_lab.store.jsonable import encodable
from tdbg_lab.store.limits import MAX_NAME_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["read"]

_MAX_SPANS = 4_000_000
_MAX_SAMPLES = 200_000
_SPANS_AT_ONCE = 20_000
_STEP = re.compile(r"ProfilerStep#(\d{1,9})")
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"}
_ABSOLUTE_US = 1e14
"""Times beyond are since the epoch (the year 1973), not since the start of the trace."""


class _Texts:
    """Texts as numbers: a trace says few of them, many times."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._index: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._index.get(text)
        if found is None:
            found = self._index[text] = len(self.all)
            self.all.append(text)
        return found


class _Trace:
    """Spans and counters of one file, column by column; times in us as the file has them."""

    def __init__(self) -> None:
        self.start, self.duration = array("d"), array("d")
        self.name, self.phase, self.device, self.thread = array("l"), array("l"), array("l"), array("q")
        self.texts = _Texts()
        self.samples: list[tuple[float, str, str, float]] = []
        self.head: dict[str, Any] = {}
        self.problems: list[str] = []

    def __len__(self) -> int:
        return len(self.start)

    def add(self, event: dict[str, Any]) -> None:
        """Take an event, if it is a span or a counter that can be understood."""
        kind = event.get("ph")
        start = _number(event.get("ts"))
        if start is None:
            return
        if kind == "X":
            duration = _number(event.get("dur")) or 0.0
            if duration >= 0 and len(self) < _MAX_SPANS:
                self._span(event, start, duration)
        elif kind == "C" and isinstance(event.get("args"), dict) and len(self.samples) < _MAX_SAMPLES:
            name = _text(event.get("name", ""))
            for key, value in list(event["args"].items())[:16]:
                found = _number(value)
                if found is not None:
                    self.samples.append((start, name, _text(key), found))

    def _span(self, event: dict[str, Any], start: float, duration: float) -> None:
        text = self.texts.number
        category = _text(event.get("cat") or "span", 64)
        args = event.get("args")
        device = ""
        if category in _ON_DEVICE and isinstance(args, dict):
            device = _text(f"gpu{args.get('device', 0)}", 32)
        self.start.append(start)
        self.duration.append(duration)
        self.name.append(text(_text(event.get("name", ""))))
        self.phase.append(text(category))
        self.device.append(text(device))
        self.thread.append(_thread(event.get("tid")))


def read(
    files: Sequence[Path], root: Path, store: Path, name: str, progress: Callable[[float], None]
) -> Path:
    """Make a run of traces, see `tdbg_lab.exchange.import_run`; each file that holds some is a rank of it.

    Raises
    ------
    ConfigError
        No file holds a span.
    """
    del root
    traces: dict[Path, _Trace] = {}
    problems = []
    for done, file in enumerate(files, start=1):
        trace = _parsed(file)
        problems += trace.problems
        if len(trace) or trace.samples:
            traces[file] = trace
        progress(0.8 * done / len(files))
    if not traces:
        raise ConfigError(
            f"{files[0].name} holds no span and no counter{f': {problems[0]}' if problems else ''}; "
            "expected a trace of torch.profiler (export_chrome_trace) or another Chrome trace."
        )
    if len(traces) < len(files):
        problems.append(f"{len(files) - len(traces)} of {len(files)} files hold no span and no counter")
    folder = begin(store, name=name, framework=_framework(traces.values()), source="trace")
    times: list[int] = []
    steps = -1
    for rank, (file, trace) in enumerate(traces.items()):
        base = _base_ns(trace, file)
        steps = max(steps, _write_spans(trace, base, folder.path, rank, times))
        _write_samples(trace, base, folder.path, rank, times)
        progress(0.8 + 0.2 * (rank + 1) / len(traces))
    finish(
        folder,
        created_ns=min(times, default=None),
        ended_ns=max(times, default=None),
        last_step=steps,
        notes=_notes(traces.values(), problems),
    )
    return folder.path


def _parsed(file: Path) -> _Trace:
    trace, stream = _Trace(), TraceStream(file)
    try:
        for event in stream.events():
            trace.add(event)
    except (BrokenTraceError, OSError) as error:
        trace.problems.append(f"{file.name} was read up to where it breaks: {error}")
    trace.head = stream.head
    if len(trace) >= _MAX_SPANS:
        trace.problems.append(f"of {file.name} only the first {_MAX_SPANS} spans were taken")
    if len(trace.samples) >= _MAX_SAMPLES:
        trace.problems.append(f"of {file.name} only the first {_MAX_SAMPLES} counter values were taken")
    return trace


def _base_ns(trace: _Trace, file: Path) -> int:
    """What times count from, ns since the epoch; when the file does not say, it ends when it was written."""
    base = trace.head.get("baseTimeNanoseconds")
    if isinstance(base, int) and 0 <= base < 2**62:
        return base
    times = trace.start or array("d", [one[0] for one in trace.samples])
    if max(times) > _ABSOLUTE_US:
        return 0
    return file.stat().st_mtime_ns - int(max(times) * 1000)


def _write_spans(trace: _Trace, base: int, path: Path, rank: int, times: list[int]) -> int:
    """Write the spans by start; returns the last step."""
    start, duration = np.array(trace.start), np.array(trace.duration)
    order = np.argsort(start, kind="stable")
    begin_ns = base + (start[order] * 1000).astype(np.int64)
    length_ns = (duration[order] * 1000).astype(np.int64)
    names, phases, devices = (np.array(c)[order] for c in (trace.name, trace.phase, trace.device))
    threads = np.array(trace.thread)[order]
    steps = _steps(trace, names, begin_ns, length_ns)
    texts = np.array([*trace.texts.all, ""], dtype=object)
    writer = RankWriter(path, rank)
    try:
        for i in range(0, len(order), _SPANS_AT_ONCE):
            part = slice(i, i + _SPANS_AT_ONCE)
            writer.append_spans(
                texts[names[part]].tolist(),
                texts[phases[part]].tolist(),
                begin_ns[part],
                length_ns[part],
                steps[part],
                texts[devices[part]].tolist(),
                threads[part].tolist(),
            )
    finally:
        writer.close()
    if len(order):
        times += [int(begin_ns[0]), int((begin_ns + length_ns).max())]
    return int(steps.max(initial=-1))


def _steps(
    trace: _Trace, names: NDArray[Any], begin_ns: NDArray[np.int64], length_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Step of each span: that of the ``ProfilerStep#n`` it begins in, else -1."""
    numbers = {i: int(m[1]) for i, text in enumerate(trace.texts.all) if (m := _STEP.fullmatch(text))}
    steps = np.full(len(names), -1, np.int64)
    at = np.flatnonzero(np.isin(names, list(numbers)))
    if not len(at):
        return steps
    place = np.searchsorted(begin_ns[at], begin_ns, side="right") - 1
    inside = (place >= 0) & (begin_ns < (begin_ns + length_ns)[at][place])
    values = np.array([numbers[int(name)] for name in names[at]], np.int64)
    steps[inside] = values[place[inside]]
    return steps


def _write_samples(trace: _Trace, base: int, path: Path, rank: int, times: list[int]) -> None:
    if not trace.samples:
        return
    writer = SystemWriter(path, rank)
    samples = sorted(trace.samples)
    try:
        for time_us, group in groupby(samples, key=itemgetter(0)):
            _, names, keys, values = zip(*group, strict=True)
            writer.append(base + int(time_us * 1000), keys, names, values)
    finally:
        writer.close()
    times += [base + int(samples[at][0] * 1000) for at in (0, -1)]


def _number(value: Any) -> float | None:
    """A number, also written as text."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < 2**52 else None


def _text(value: Any, limit: int = MAX_NAME_CHARS) -> str:
    """A text; halves of characters, which JSON can hold and no file of ours, become escapes."""
    return encodable(str(value)[:limit])[:limit]


def _thread(value: Any) -> int:
    """A number for a thread, which may be called by a text."""
    if isinstance(value, int) and abs(value) < 2**62:
        return value
    text = _text(value)
    digits = re.search(r"\d{1,15}", text)
    return int(digits[0]) if digits else sum(text.encode()[:64])


def _framework(traces: Collection[_Trace]) -> str:
    return "pytorch" if any("schemaVersion" in trace.head for trace in traces) else "trace"


def _notes(traces: Collection[_Trace], problems: Sequence[str]) -> str:
    spans = sum(map(len, traces))
    samples = sum(len(trace.samples) for trace in traces)
    text = f"Imported {spans} spans and {samples} counter values of {len(traces)} trace files."
    return " ".join([text, *(f"{p[:1].upper()}{p[1:]}." for p in problems[:20])])
