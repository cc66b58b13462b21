"""How long training steps took, and which ones stand out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.phases import StepTimes, step_times, training_spans, with_own_time
from tdbg_lab.views.labels import count, first_ranks, number, percent, safe
from tdbg_lab.views.palette import ACCENT, MUTED, pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import RANGE, WINDOW, Range, range_words, recent_spans, zero_ns
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure, small

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["no_steps", "step_time_view"]

_NO_STEPS = (
    "No step was timed yet.",
    "Steps are timed by attach(..., profiler=True), the default; a step shows when the next one begins.",
)
_NONE_IN_RANGE = (
    "No step was timed in this range.",
    "Zoom out on the timeline, or go back to all of the run.",
)
_WIDE = 20.0
"""From when on the axis is logarithmic: the longest step, such as a first one that compiles, takes this many
times the median."""
_LEAST_MS = 1e-3
_BINS = 100
_MOST_RANKS = 8
_MOST_OUTLIERS = 400


@view(
    "step_times",
    title="Step times",
    description="Histogram of how long training steps took, with the slow ones marked.",
    params=(
        WINDOW,
        RANGE,
        Param(
            "stddev",
            "Outlier from",
            "int",
            3,
            minimum=1,
            maximum=20,
            help="Standard deviations above the mean from which a step is an outlier.",
        ),
    ),
)
def step_time_view(
    run: Run,
    *,
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
    stddev: int = 3,
) -> go.Figure:
    """A histogram for each rank, percentiles as lines, and outliers as marks with their steps."""
    spans = training_spans(recent_spans(run, window_s, range))
    times = step_times(spans)
    if not len(times.step):
        return empty(*no_steps(range))
    slow = times.outliers(stddev)
    ms = times.duration_s * 1e3
    wide = float(ms.max()) > _WIDE * float(np.median(ms))
    edges = _edges(ms, slow, wide=wide)
    traces = _histograms(times, ms, edges)
    phases = _slow_phases(spans, times, slow)
    traces += _marks(times, ms, slow, phases, zero_ns(run))
    figure = new_figure(traces, bargap=0, barmode="overlay" if len(np.unique(times.rank)) > 1 else "group")
    figure.update_layout(
        xaxis={"title": {"text": "Duration of a step (ms)"}, "type": "log" if wide else "linear"},
        yaxis={"title": {"text": "Steps"}, "rangemode": "tozero"},
    )
    for share, name in ((50, "median"), (95, "p95")):
        _line(figure, float(np.percentile(ms, share)), name, wide=wide)
    others = first_ranks(_MOST_RANKS, len(np.unique(times.rank)))
    return describe(figure, range_words(range) + _caption(ms, slow, stddev, phases) + others, x_axes=())


def no_steps(range: Range) -> tuple[str, str]:  # noqa: A002 - its name on the wire
    """What to say where no step was timed, in the range or at all."""
    return _NO_STEPS if range is None else _NONE_IN_RANGE


def _edges(ms: NDArray[np.float64], slow: NDArray[np.bool_], *, wide: bool) -> NDArray[np.float64]:
    """Bins over all but the outliers, which would leave no room for the others; `wide`: on a log axis."""
    usual = ms[~slow] if (~slow).any() else ms
    low, high = float(usual.min()), float(usual.max())
    if wide:
        low = max(low, _LEAST_MS)
        return np.geomspace(low, max(high, low * 1.01), _BINS + 1)
    return np.linspace(low, high if high > low else low + max(low * 0.01, 1e-3), _BINS + 1)


def _histograms(
    times: StepTimes, ms: NDArray[np.float64], edges: NDArray[np.float64]
) -> list[dict[str, Any]]:
    ranks = np.unique(times.rank)[:_MOST_RANKS].tolist()
    traces = []
    for index, rank in enumerate(ranks):
        counts, _ = np.histogram(ms[times.rank == rank], edges)
        traces.append(
            {
                "type": "bar",
                "x": (edges[:-1] + edges[1:]) / 2,
                "y": counts,
                "width": np.diff(edges),
                "name": f"rank {rank}",
                "showlegend": len(ranks) > 1,
                "marker": {"color": pick(index), "line": {"width": 0}},
                "opacity": 0.6 if len(ranks) > 1 else 1.0,
                "hovertemplate": "%{y:,d} steps of about %{x:.4~g} ms<extra></extra>",
            }
        )
    return traces


def _marks(
    times: StepTimes,
    ms: NDArray[np.float64],
    slow: NDArray[np.bool_],
    phases: dict[tuple[int, int], str],
    zero: int,
) -> list[dict[str, Any]]:
    """Outliers; ``meta`` says of each which part of the time a click on it shows, in s."""
    rows = np.flatnonzero(slow)
    rows = rows[np.argsort(-ms[rows], kind="stable")][:_MOST_OUTLIERS]
    if not len(rows):
        return []
    which = [phases.get((int(times.rank[row]), int(times.step[row])), "") for row in rows]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": ms[rows],
            "y": np.zeros(len(rows)),
            "customdata": times.step[rows],
            "meta": {"moments": _around(times, rows, zero)},
            "text": [f", mostly {safe(each)}" if each else "" for each in which],
            "name": count(len(rows), "outlier"),
            "showlegend": True,
            "cliponaxis": False,
            "marker": {"color": ACCENT, "size": 9, "symbol": "triangle-up"},
            "hovertemplate": "step %{customdata:,d}: <b>%{x:.4~g} ms</b>%{text}<extra></extra>",
        }
    ]


def _around(times: StepTimes, rows: NDArray[np.int64], zero: int) -> list[list[float]]:
    """First and last second of each step, with as much again before and after it."""
    start_s = (times.start_ns[rows] - zero) / 1e9
    long_s = times.duration_s[rows]
    before_s = np.maximum(start_s - long_s, np.minimum(start_s, 0.0))  # nothing is before the run
    ends = zip(before_s.round(6), (start_s + 2 * long_s).round(6), strict=True)
    return [[float(first), float(last)] for first, last in ends]


def _slow_phases(spans: DataFrame, times: StepTimes, slow: NDArray[np.bool_]) -> dict[tuple[int, int], str]:
    """For each outlier the phase that took the time that other steps do not take."""
    wanted = {(int(times.rank[row]), int(times.step[row])) for row in np.flatnonzero(slow)}
    if not wanted:
        return {}
    frame = with_own_time(spans)
    table = frame.pivot_table(
        index=["rank", "step"], columns="phase", values="time", aggfunc="sum", fill_value=0.0
    )
    excess = table - table.median()
    chosen = excess.loc[[key for key in table.index if key in wanted]]
    names = chosen.idxmax(axis=1).astype(str).tolist()
    ranks, steps = (chosen.index.get_level_values(level).tolist() for level in ("rank", "step"))
    return {(int(rank), int(step)): name for rank, step, name in zip(ranks, steps, names, strict=True)}


def _line(figure: go.Figure, at: float, name: str, *, wide: bool) -> None:
    figure.add_shape(
        type="line",
        x0=at,
        x1=at,
        y0=0,
        y1=1,
        xref="x",
        yref="paper",
        line={"color": MUTED, "width": 1.3, "dash": "dot"},
    )
    figure.add_annotation(
        small(name, x=math.log10(max(at, _LEAST_MS)) if wide else at, xref="x", xanchor="left", yanchor="top")
    )


def _caption(
    ms: NDArray[np.float64], slow: NDArray[np.bool_], stddev: int, phases: dict[tuple[int, int], str]
) -> str:
    median, p95, p99 = (number(float(np.percentile(ms, q)), 3) for q in (50, 95, 99))
    longest = number(float(ms.max()), 3)
    text = f"{count(len(ms), 'step')}: median {median} ms, p95 {p95} ms, p99 {p99} ms, longest {longest} ms"
    bad = int(slow.sum())
    if not bad:
        return f"{text}; no step is longer than the mean and {stddev} standard deviations."
    lost = float((ms[slow] - np.median(ms)).sum() / ms.sum())
    names = list(phases.values())
    most = max(sorted(set(names)), key=names.count) if names else ""
    why = f", mostly in {most}" if most else ""
    return f"{text}; {count(bad, 'outlier')}{why}, which cost {percent(max(lost, 0.0))} of the time."
