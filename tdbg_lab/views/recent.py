"""The part of a run's time that views of spans and samples look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.views.labels import duration, number
from tdbg_lab.views.param import Param

if TYPE_CHECKING:
    from pandas import DataFrame

    from tdbg_lab.run import Run
    from tdbg_lab.store.series import SampleSeries

__all__ = [
    "RANGE",
    "WINDOW",
    "Range",
    "end_ns",
    "range_words",
    "recent_samples",
    "recent_series",
    "recent_spans",
    "zero_ns",
]

Range = tuple[float | None, float | None] | None
"""First and last second since the start of the run; None for an end that is open, or for no range."""

WINDOW = Param(
    "window_s",
    "Window",
    "int",
    1800,
    minimum=1,
    maximum=31_536_000,
    help="Seconds back from the latest record.",
)
RANGE = Param("range", "Range", "seconds", help="Seconds since the start of the run; instead of the window.")


def zero_ns(run: Run) -> int:
    """The instant that is 0 s: when the run began."""
    known = [value for value in (run.info.created_ns, run.first_time_ns) if value]
    return int(min(known)) if known else 0


def end_ns(run: Run) -> int | None:
    """When the latest row, span or sample was recorded; None when there is none."""
    last = run.last_time_ns
    ends = [last] if last is not None else []
    sample, spans = run.last_sample_ns, run.spans(start_ns=last)  # both go on after the last row
    ends += [sample] if sample is not None else []
    if len(spans):
        ends.append(int((spans["start_ns"] + spans["duration_ns"]).max()))
    return max(ends, default=None)


def recent_spans(run: Run, window_s: int, range: Range = None) -> DataFrame:  # noqa: A002 - its name on the wire
    """Spans that begin in the range, or in the window when there is none."""
    start, end = _between(run, window_s, range)
    return run.spans(start_ns=start, end_ns=end)


def recent_samples(
    run: Run,
    window_s: int,
    metrics: tuple[str, ...],
    range: Range = None,  # noqa: A002 - its name on the wire
) -> DataFrame:
    """Samples of these metrics in the range, or in the window when there is none."""
    start, end = _between(run, window_s, range)
    return run.samples(metrics=metrics, start_ns=start, end_ns=end)


def recent_series(
    run: Run,
    window_s: int,
    metrics: tuple[str, ...],
    range: Range = None,  # noqa: A002 - its name on the wire
) -> list[SampleSeries]:
    """Samples of these metrics in the range, or in the window when there is none, by metric and device."""
    start, end = _between(run, window_s, range)
    return run.sample_series(metrics, start_ns=start, end_ns=end)


def range_words(range: Range) -> str:  # noqa: A002 - its name on the wire
    """What a caption of a range begins with; empty when there is none."""
    if range is None:
        return ""
    low, high = range[0] or 0.0, range[1]
    if high is None:
        return f"From {number(low, 7)} s on: "
    return f"{duration(high - low)} from {number(low, 7)} s on: "


def _between(run: Run, window_s: int, wanted: Range) -> tuple[int | None, int | None]:
    if wanted is None:
        end = end_ns(run)
        return (None if end is None else end - window_s * 10**9), None
    zero = zero_ns(run)
    low, high = (None if one is None else zero + int(one * 1e9) for one in wanted)
    return low, high
