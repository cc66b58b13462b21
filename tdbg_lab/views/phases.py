"""Which phases the time of training goes to: in all, over time, and in the last steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.phases import training_spans, with_own_time
from tdbg_lab.views.labels import count, percent, safe
from tdbg_lab.views.palette import phase_colours
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import RANGE, WINDOW, Range, range_words, recent_spans
from tdbg_lab.views.registry import view
from tdbg_lab.views.step_times import no_steps
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["phase_shares", "phases_view"]

_PARTS = 120
_LAST_STEPS = 30
_MOST = 16


@view(
    "phases",
    title="Phases",
    description="Share of data loading, forward, backward, optimizer and other phases.",
    params=(
        Param(
            "show",
            "Show",
            "choice",
            "bars",
            choices=("bars", "pie", "time", "steps"),
            choice_labels=("Bars", "Pie", "Over time", "Last steps"),
        ),
        WINDOW,
        RANGE,
    ),
)
def phases_view(
    run: Run,
    *,
    show: str = "bars",
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
) -> go.Figure:
    """Time of each phase without the phases within it."""
    spans = training_spans(recent_spans(run, window_s, range))
    if not len(spans):
        return empty(*no_steps(range))
    frame = with_own_time(spans)
    shares = _shares(frame)
    names = list(shares)[:_MOST]
    draw = {"bars": _bars, "pie": _pie, "time": _over_time, "steps": _last_steps}[show]
    figure = draw(frame, shares, names)
    return describe(figure, range_words(range) + _caption(shares, frame), x_axes=())


def phase_shares(run: Run, window_s: int) -> dict[str, float]:
    """Share of each phase in the time of all phases, largest first; empty without any."""
    spans = training_spans(recent_spans(run, window_s))
    if not len(spans):
        return {}
    return _shares(with_own_time(spans))


def _shares(frame: DataFrame) -> dict[str, float]:
    busy = frame.groupby("phase")["time"].sum().sort_values(ascending=False, kind="stable")
    whole = float(busy.sum()) or 1.0
    return {str(name): float(time) / whole for name, time in busy.items()}


def _bars(frame: DataFrame, shares: dict[str, float], names: list[str]) -> go.Figure:
    mean = frame.groupby("phase")["time"].sum() / max(frame.groupby(["rank", "step"]).ngroups, 1) / 1e6
    shown = list(reversed(names))
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [100 * shares[name] for name in shown],
        "y": [safe(name) for name in shown],
        "marker": {"color": phase_colours(shown), "line": {"width": 0}},
        "customdata": [float(mean[name]) for name in shown],
        "text": [percent(shares[name]) for name in shown],
        "textposition": "auto",
        "hovertemplate": "%{y}: <b>%{x:.3~g}%</b>, %{customdata:.4~g} ms a step<extra></extra>",
    }
    figure = new_figure([trace])
    figure.update_layout(xaxis={"title": {"text": "Share of the time (%)"}}, yaxis={"type": "category"})
    return figure


def _pie(_frame: DataFrame, shares: dict[str, float], names: list[str]) -> go.Figure:
    trace = {
        "type": "pie",
        "labels": [safe(name) for name in names],
        "values": [shares[name] for name in names],
        "marker": {"colors": phase_colours(names)},
        "hole": 0.45,
        "sort": False,
        "direction": "clockwise",
        "textinfo": "label+percent",
        "hovertemplate": "%{label}: <b>%{percent}</b><extra></extra>",
        "showlegend": False,
    }
    return new_figure([trace])


def _over_time(frame: DataFrame, _shares: dict[str, float], names: list[str]) -> go.Figure:
    """Shares in equal parts of the time, stacked."""
    start = frame["start_ns"].to_numpy(dtype=np.int64)
    zero, end = int(start.min()), int((start + frame["duration_ns"].to_numpy(dtype=np.int64)).max())
    width = max((end - zero) / _PARTS, 1.0)
    part = np.minimum(((start - zero) / width).astype(np.int64), _PARTS - 1)
    table = _table(part, frame, names)
    whole = table.sum(axis=0)
    x = (np.arange(_PARTS) + 0.5) * width / 1e9
    seen = whole > 0
    traces = [
        {
            **_area(name, colour),
            "x": x[seen],
            "y": 100 * row[seen] / whole[seen],
            "hovertemplate": f"{safe(name)} <b>%{{y:.3~g}}%</b> at %{{x:.1f}} s<extra></extra>",
        }
        for name, colour, row in zip(names, phase_colours(names), table, strict=True)
    ]
    figure = new_figure(traces)
    figure.update_layout(
        xaxis={"title": {"text": "Time in the window (s)"}},
        yaxis={"title": {"text": "Share (%)"}, "range": [0, 100]},
    )
    return figure


def _last_steps(frame: DataFrame, _shares: dict[str, float], names: list[str]) -> go.Figure:
    """Milliseconds of each phase in the last steps, stacked; ranks are averaged."""
    steps = np.unique(frame["step"].to_numpy(dtype=np.int64))[-_LAST_STEPS:]
    last = frame[frame["step"].isin(steps).to_numpy()]
    place = np.searchsorted(steps, last["step"].to_numpy(dtype=np.int64))
    table = _table(place, last, names, len(steps)) / 1e6 / max(last["rank"].nunique(), 1)
    traces = [
        {
            "type": "bar",
            "x": steps,
            "y": row,
            "name": safe(name),
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertemplate": f"step %{{x:,d}}: {safe(name)} <b>%{{y:.4~g}} ms</b><extra></extra>",
        }
        for name, colour, row in zip(names, phase_colours(names), table, strict=True)
    ]
    figure = new_figure(traces, barmode="stack", bargap=0.15)
    figure.update_layout(
        xaxis={"title": {"text": "Step"}, "tickformat": ",d"}, yaxis={"title": {"text": "Time (ms)"}}
    )
    return figure


def _table(
    column: NDArray[np.int64], frame: DataFrame, names: list[str], columns: int = _PARTS
) -> NDArray[np.float64]:
    """Time by phase and column, shape ``(len(names), columns)``, ns."""
    row = frame["phase"].map({name: index for index, name in enumerate(names)}).to_numpy(dtype=np.float64)
    kept = np.isfinite(row)
    place = row[kept].astype(np.int64) * columns + column[kept]
    time = frame["time"].to_numpy(dtype=np.float64)[kept]
    summed = np.bincount(place, weights=time, minlength=len(names) * columns).astype(np.float64)
    return summed.reshape(len(names), columns)


def _area(name: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "phases",
        "name": safe(name),
        "line": {"width": 0.5, "color": colour},
        "fillcolor": colour,
    }


def _caption(shares: dict[str, float], frame: DataFrame) -> str:
    told = ", ".join(f"{name} {percent(share)}" for name, share in list(shares.items())[:5])
    steps = int(frame["step"].nunique())
    text = f"{told} of {count(steps, 'step')}."
    data = shares.get("data", 0.0)
    if data > 0.3:
        text += f" The loop waits for data {percent(data)} of the time: more workers may help."
    return text
