"""Where the time goes: phases of training and the machine's load on one time axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import evenly
from tdbg_lab.records import RunStatus
from tdbg_lab.views.common import STEP, points
from tdbg_lab.views.finding_marks import finding_marks
from tdbg_lab.views.load_lines import GROUPS, by_device, load_axes, load_lines
from tdbg_lab.views.machines import hosts_of
from tdbg_lab.views.palette import MUTED
from tdbg_lab.views.param import Param
from tdbg_lab.views.phase_tracks import phase_tracks
from tdbg_lab.views.recent import RANGE, Range, end_ns, zero_ns
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure, time_axis
from tdbg_lab.views.timeline_words import TOLD, timeline_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["timeline"]

_HALF = 0.36
"""Half the height of a bar; rows are 1 apart."""
_NS = 1e9
_LIVE_S = 60
"""What is shown of a run that is live when nothing else is asked for."""
_LONGEST_NS = 300 * 10**9
"""How long before the picture a span that reaches into it may begin."""


@view(
    "timeline",
    title="Timeline",
    description="Phases of training and the load of CPU, GPU and memory on one time axis.",
    axis="time",
    params=(
        Param(
            "window_s",
            "Window",
            "int",
            minimum=1,
            maximum=31_536_000,
            help="Seconds back from the latest record. Default: the last minute of a live run, else all.",
        ),
        RANGE,
        Param(
            "metrics",
            "Machine",
            "choice",
            "usage",
            choices=("usage", "process", "bytes", "io", "gpu", "links", "clocks", "all", "none"),
            choice_labels=(
                "Load",
                "Process",
                "Memory in bytes",
                "Disk and network",
                "GPU power",
                "GPU links",
                "GPU clocks",
                "All",
                "None",
            ),
        ),
        Param(
            "tracks",
            "Tracks",
            "choice",
            "together",
            choices=("together", "machines", "processes"),
            choice_labels=("All processes together", "Each machine", "Each process"),
            help="Whose phases are kept apart, where several processes train.",
        ),
        STEP,
        points(600, 4000),
    ),
)
def timeline(
    run: Run,
    *,
    window_s: int | None = None,
    range: Range = None,  # noqa: A002 - its name on the wire
    metrics: str = "usage",
    tracks: str = "together",
    step: int | None = None,
    n_out: int = 600,
) -> go.Figure:
    """Bars of phases in tracks, marks of steps, and lines of samples; all share the x axis."""
    zero = zero_ns(run)
    bounds = _bounds(run, zero, window_s, range)
    if bounds is None:
        return empty(
            "Nothing was profiled yet.",
            "Phases and load are recorded by attach(..., profiler=True), which is the default; "
            "the first samples come within a second.",
        )
    low, high = bounds
    start, end = zero + int(low * _NS), zero + int(high * _NS)
    spans = run.spans(start_ns=start - _LONGEST_NS, end_ns=end)
    spans = spans[spans["start_ns"] + spans["duration_ns"] >= start]  # those that reach into the picture
    spans = spans.assign(phase=spans["phase"].astype("category"))  # millions of names, a few different ones
    asked = [name for name in (GROUPS if metrics == "all" else (metrics,)) if name in GROUPS]
    wanted = {"cpu", "gpu", *TOLD, *(metric for name in asked for metric in GROUPS[name][1])}
    series = run.sample_series(sorted(wanted), start_ns=start, end_ns=end)
    samples = by_device(run, series)
    steps, seconds = _steps(run, zero, low, high)
    drawn, phases = phase_tracks(spans, zero, (high - low) / n_out, _owners(run, tracks))
    marks = _step_marks(steps, seconds) + finding_marks(run, zero, (low, high))
    present = {metric for metric, _ in samples}
    groups = [name for name in asked if present & set(GROUPS[name][1])]
    traces = [*drawn, *marks]
    for row, name in enumerate(groups):
        traces += load_lines(samples, name, zero, n_out, f"y{row + 2}")
    if not traces:
        return empty("Nothing happened in this time.", "Widen the window, or move the range.")
    rows = list(dict.fromkeys([*phases, *(str(mark["y"][0]) for mark in marks)]))
    _place(rows, [*drawn, *marks])
    figure = _draw(traces, rows, groups, (low, high))
    _mark_step(figure, steps, seconds, step)
    kept = evenly(len(steps), 300)
    return describe(
        figure,
        timeline_words(run, spans, series, bounds=(low, high), asked=asked),
        step=step,
        time_zero_ns=str(zero),
        step_seconds=[[int(steps[i]), round(float(seconds[i]), 4)] for i in kept],
    )


def _bounds(run: Run, zero: int, window_s: int | None, wanted: Range) -> tuple[float, float] | None:
    """First and last second shown, or None when there is nothing at all."""
    if wanted is not None and wanted[0] is not None and wanted[1] is not None:
        return float(wanted[0]), max(float(wanted[1]), wanted[0] + 1e-3)
    latest = end_ns(run)
    if latest is None:
        return None
    end = (latest - zero) / _NS
    if window_s is None:
        window_s = _LIVE_S if run.status is RunStatus.RUNNING else math.ceil(end)
    first, last = wanted if wanted is not None else (max(0.0, end - window_s), end)
    low = 0.0 if first is None else float(first)
    high = end if last is None else float(last)
    return low, max(high, low + 1e-3)


def _owners(run: Run, tracks: str) -> dict[int, str] | None:
    """Whose tracks are kept apart: a name for each rank; None where there is nothing to tell apart."""
    ranks = run.ranks()
    if tracks == "processes" and len(ranks) > 1:
        return {rank: f"rank {rank}" for rank in ranks}
    if tracks == "machines":
        hosts = hosts_of(run)
        return hosts if len(set(hosts.values())) > 1 else None
    return None


def _steps(run: Run, zero: int, low: float, high: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Saved steps in sight and when they were written, seconds."""
    steps, times = run.step_times()
    seconds = (np.asarray(times, dtype=np.int64) - zero) / _NS
    inside = (seconds >= low) & (seconds <= high)
    return np.asarray(steps, dtype=np.int64)[inside], seconds[inside]


def _step_marks(steps: NDArray[np.int64], seconds: NDArray[np.float64]) -> list[dict[str, Any]]:
    if not len(steps):
        return []
    kept = evenly(len(steps), 120)
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": seconds[kept],
            "y": ["step"] * len(kept),
            "yaxis": "y",
            "customdata": steps[kept],
            "name": "saved step",
            "showlegend": False,
            "marker": {"symbol": "line-ns", "size": 11, "line": {"width": 1.4, "color": MUTED}},
            "hovertemplate": "step %{customdata:,d} saved at %{x:.2f} s<extra></extra>",
        }
    ]


def _place(rows: Sequence[str], traces: Sequence[dict[str, Any]]) -> None:
    """Where the rows stand, in place of their names: a heat map has no room of its own beside a category."""
    places = {name: len(rows) - 1 - index for index, name in enumerate(rows)}
    for trace in traces:
        at = [places[name] for name in trace["y"]]
        trace["y"] = [at[0] - _HALF, at[0] + _HALF] if trace["type"] == "heatmap" else at


def _draw(
    traces: Sequence[dict[str, Any]],
    tracks: Sequence[str],
    groups: Sequence[str],
    bounds: tuple[float, float],
) -> go.Figure:
    top = max(1.0, 0.28 * len(tracks)) if tracks else 0.25
    return new_figure(
        traces,
        heights=[top, *[1.2] * len(groups)],
        xaxis=time_axis(range=list(bounds)),
        yaxis={
            "tickmode": "array",
            "tickvals": list(range(len(tracks)))[::-1],
            "ticktext": list(tracks),
            "zeroline": False,
            "range": [-0.6, max(len(tracks), 1) - 0.4],
            "showgrid": False,
            "fixedrange": True,
            "visible": bool(tracks),
        },
        margin={"t": 34},
        legend={"y": 1.0},
        **load_axes(groups),
    )


def _mark_step(
    figure: go.Figure, steps: NDArray[np.int64], seconds: NDArray[np.float64], step: int | None
) -> None:
    """A line where the shared step was saved (the axis is time, so hosts cannot place it)."""
    if step is None or not len(steps) or not int(steps.min()) <= step <= int(steps.max()):
        return
    at = float(seconds[int(np.abs(steps - step).argmin())])
    figure.add_shape(
        type="line",
        xref="x",
        yref="paper",
        x0=at,
        x1=at,
        y0=0,
        y1=1,
        line={"color": MUTED, "width": 1.5, "dash": "dash"},
    )
