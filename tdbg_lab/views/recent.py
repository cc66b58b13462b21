"""The part of a run's time that views of spans and samples look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.views.param import Param

if TYPE_CHECKING:
    from pandas import DataFrame

    from tdbg_lab.run import Run

__all__ = ["WINDOW", "end_ns", "recent_samples", "recent_spans"]

WINDOW = Param(
    "window_s",
    "Window",
    "int",
    1800,
    minimum=1,
    maximum=31_536_000,
    help="Seconds back from the latest record.",
)


def end_ns(run: Run) -> int | None:
    """When the latest row, span or sample was recorded; None when there is none."""
    last = run.last_time_ns
    ends = [last] if last is not None else []
    samples, spans = run.samples(start_ns=last), run.spans(start_ns=last)
    if len(samples):
        ends.append(int(samples["time_ns"].max()))
    if len(spans):
        ends.append(int((spans["start_ns"] + spans["duration_ns"]).max()))
    return max(ends, default=None)


def recent_spans(run: Run, window_s: int) -> DataFrame:
    """Spans that begin in the window."""
    end = end_ns(run)
    return run.spans(start_ns=None if end is None else end - window_s * 10**9)


def recent_samples(run: Run, window_s: int, metrics: tuple[str, ...]) -> DataFrame:
    """Samples of these metrics in the window."""
    end = end_ns(run)
    return run.samples(metrics=metrics, start_ns=None if end is None else end - window_s * 10**9)
