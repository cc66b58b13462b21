"""Series of numbers that readers give, and which of them somebody wants to see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.analysis.phases import step_times
from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.profiler.utils import to_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
    from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader

__all__ = ["Series", "chosen_metrics", "matching", "metric_series", "phase_series", "step_series"]

_PHASES = {"forward": "Forward", "backward": "Backward(post-forward)"}
"""The predecessor's names of phases of ours."""
STEP = "Step:ModeKeys.TRAIN"


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers over time, by time, shapes ``(N,)``."""

    seconds: NDArray[np.float64]
    """Since the epoch."""
    values: NDArray[np.float64]
    """Readings, or durations in seconds."""


def metric_series(
    reader: LocalSystemMetricsReader, start_us: float, end_us: float, *, show_workers: bool
) -> dict[tuple[str, str], Series]:
    """Readings between two times, by dimension and event.

    A dimension is one of a worker (``CPUUtilization-nodeid:algo-1``) unless workers are not shown. Where
    there are several devices, the event ``total`` is their mean.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for event in reader.get_events(start_us, end_us):
        dimension = f"{event.dimension}-nodeid:{event.node_id}" if show_workers else event.dimension
        name = "total" if event.name == "cpu" else event.name or event.type  # of all cores
        found.setdefault((dimension, name), []).append((event.timestamp, event.value))
    for dimension in {one for one, _ in found}:
        names = [name for one, name in found if one == dimension]
        if len(names) > 1 and "total" not in names:
            rows = [row for name in names for row in found[dimension, name]]
            found[dimension, "total"] = _means(rows)
    return {key: _series(rows) for key, rows in sorted(found.items())}


def phase_series(
    reader: LocalAlgorithmMetricsReader, start_us: float, end_us: float, *, show_workers: bool
) -> dict[str, Series]:
    """Durations of phases that begin between two times, by phase; among them whole steps."""
    found: dict[str, list[tuple[float, float]]] = {}
    for event in reader.get_events(start_us, end_us):
        if event.start_time < start_us:
            continue
        name = _PHASES.get(event.event_phase, event.event_phase)
        name = f"{name}-nodeid:{event.node_id}" if show_workers else name
        found.setdefault(name, []).append((event.start_time / 1e6, event.duration / 1e6))
    series = {name: _series(rows) for name, rows in sorted(found.items())}
    return {**step_series(reader, start_us, end_us, show_workers=show_workers), **series}


def step_series(
    reader: LocalAlgorithmMetricsReader, start_us: float, end_us: float, *, show_workers: bool = True
) -> dict[str, Series]:
    """Durations of steps that begin between two times; made from phases where no step was recorded."""
    spans = reader.run.spans(start_ns=to_ns(start_us), end_ns=to_ns(end_us))
    steps = spans[spans["phase"].astype(str).str.startswith("Step:").to_numpy(dtype=bool)]
    rows: dict[str, list[tuple[float, float]]] = {}
    if len(steps):
        columns = (steps[name].tolist() for name in ("phase", "rank", "start_ns", "duration_ns"))
        for phase, rank, start, duration in zip(*columns, strict=True):
            rows.setdefault(_named(phase, rank, show_workers), []).append((start / 1e9, duration / 1e9))
    else:
        times = step_times(spans)
        starts, ranks = times.start_ns.tolist(), times.rank.tolist()
        for rank, start, duration in zip(ranks, starts, times.duration_s.tolist(), strict=True):
            rows.setdefault(_named(STEP, rank, show_workers), []).append((start / 1e9, duration))
    return {name: _series(one) for name, one in sorted(rows.items())}


def _named(phase: str, rank: int, show_workers: bool) -> str:
    return f"{phase}-nodeid:{rank}-algo-{rank + 1}" if show_workers else phase


def matching(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """Names in which one of the patterns is found, each once, in their own order.

    Raises
    ------
    SMDebugValueError
        If a pattern is no regular expression.
    """
    try:
        wanted = [re.compile(one) for one in patterns]
    except re.error as error:
        raise SMDebugValueError(f"{error.pattern!r} is no regular expression: {error.msg}.") from error
    return [name for name in dict.fromkeys(names) if any(one.search(name) for one in wanted)]


def chosen_metrics(
    series: dict[tuple[str, str], Series], dimensions: Sequence[str], events: Sequence[str]
) -> dict[tuple[str, str], Series]:
    """The series whose dimension and event fit one of the patterns each."""
    known_dimensions = set(matching(dimensions, (one for one, _ in series)))
    known_events = set(matching(events, (one for _, one in series)))
    return {key: one for key, one in series.items() if key[0] in known_dimensions and key[1] in known_events}


def _series(rows: list[tuple[float, float]]) -> Series:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Series(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))


def _means(rows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The mean of the readings of each moment."""
    table = np.array(rows, dtype=np.float64)
    moments, at = np.unique(table[:, 0], return_inverse=True)
    means = np.bincount(at, weights=table[:, 1]) / np.bincount(at)
    return list(zip(moments.tolist(), means.tolist(), strict=True))
