"""A trace for Perfetto and ``chrome://tracing``: spans, samples as counters, findings as instants."""

from __future__ import annotations

import json
import math
from typing import IO, TYPE_CHECKING, Any

from tdbg_lab.exchange.target import claim_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tdbg_lab.exchange.exports import Choice
    from tdbg_lab.run import Run

__all__ = ["write"]

_PARTS = 64
"""Parts of the run's time that are read one after the other: memory holds one of them."""
_MIN_PART_NS = 10 * 10**9


def write(
    run: Run,
    path: Path,
    choice: Choice,  # noqa: ARG001 - a trace has no tensors
    *,
    force: bool,
    progress: Callable[[float], None],
) -> None:
    """Write a trace, see `tdbg_lab.exchange.export`.

    Times are microseconds since ``baseTimeNanoseconds``, which is since the Unix epoch.
    """
    base = run.info.created_ns
    with claim_file(path, force=force) as partial, partial.open("w", encoding="utf-8") as file:
        head = {"schemaVersion": 1, "run": run.info.name, "baseTimeNanoseconds": base}
        file.write(json.dumps(head)[:-1] + ', "displayTimeUnit": "ms", "traceEvents": [\n')
        out = _Events(file)
        for start, end, share in _windows(run):
            _spans(run, out, start, end, base)
            _samples(run, out, start, end, base)
            progress(share)
        _findings(run, out, base)
        _names(run, out)
        file.write("\n]}\n")
    progress(1.0)


class _Events:
    """Events, written one a line."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._first = True
        self.threads: dict[tuple[int, int, str], None] = {}
        """Process, thread and device of every span."""

    def add(self, event: dict[str, Any]) -> None:
        self._file.write(("" if self._first else ",\n") + json.dumps(event, allow_nan=False))
        self._first = False


def _windows(run: Run) -> Iterator[tuple[int | None, int | None, float]]:
    """Parts of time that cover all there is, and the share that is done after each."""
    first = run.info.created_ns
    last = max(run.info.ended_ns or 0, run.last_write_ns, run.last_time_ns or 0, first)
    width = max((last - first) // _PARTS, _MIN_PART_NS)
    edges = list(range(first, last, width)) or [first]
    bounds: list[int | None] = [None, *edges[1:], None]
    for i in range(len(bounds) - 1):
        end = bounds[i + 1]
        yield bounds[i], None if end is None else end - 1, (i + 1) / len(edges)


def _spans(run: Run, out: _Events, start: int | None, end: int | None, base: int) -> None:
    frame = run.spans(start_ns=start, end_ns=end)
    columns = ("name", "phase", "start_ns", "duration_ns", "step", "device", "thread", "rank")
    for name, phase, begin, duration, step, device, thread, rank in zip(
        *(frame[column].tolist() for column in columns), strict=True
    ):
        lane = _lane(int(thread), device)
        out.threads[int(rank), lane, device] = None
        event = {"ph": "X", "name": name, "cat": phase, "pid": rank, "tid": lane}
        args = {"step": step} if step >= 0 else {}
        out.add({**event, "ts": (begin - base) / 1000, "dur": duration / 1000, "args": args})


def _lane(thread: int, device: str) -> int:
    """The thread of a span; each device has its own."""
    return thread if device in {"", "cpu"} else hash_of(device) * 1_000_000 + thread % 1_000_000


def hash_of(text: str) -> int:
    """A small number that is the same for the same text in every process."""
    return 1 + sum(text.encode()) % 997


def _samples(run: Run, out: _Events, start: int | None, end: int | None, base: int) -> None:
    frame = run.samples(start_ns=start, end_ns=end)
    for time_ns, metric, device, value, rank in zip(
        *(frame[column].tolist() for column in ("time_ns", "metric", "device", "value", "rank")), strict=True
    ):
        if math.isfinite(value):
            name = f"{metric} {device}".strip()
            event = {"ph": "C", "name": name, "pid": rank, "ts": (time_ns - base) / 1000}
            out.add({**event, "args": {metric: value}})


def _findings(run: Run, out: _Events, base: int) -> None:
    steps, times = run.step_times()
    by_step = dict(zip(steps.tolist(), times.tolist(), strict=True))
    for finding in run.findings():
        time_ns = by_step.get(finding.step_last, finding.time_ns)
        out.add(
            {
                "ph": "i",
                "s": "g",
                "name": f"{finding.rule}: {finding.message}",
                "cat": f"finding,{finding.severity}",
                "pid": finding.rank or 0,
                "tid": 0,
                "ts": (time_ns - base) / 1000,
                "args": {
                    "tensor": finding.tensor,
                    "step_first": finding.step_first,
                    "step_last": finding.step_last,
                    "advice": "; ".join(finding.advice),
                },
            }
        )


def _names(run: Run, out: _Events) -> None:
    """What processes and threads are called."""
    for rank in run.ranks() or [0]:
        out.add(
            {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"{run.info.name} rank {rank}"}}
        )
    for rank, lane, device in out.threads:
        text = f"{device} {lane % 1_000_000}" if device not in {"", "cpu"} else f"thread {lane}"
        out.add({"ph": "M", "name": "thread_name", "pid": rank, "tid": lane, "args": {"name": text}})
