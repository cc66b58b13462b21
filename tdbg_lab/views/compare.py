"""Two runs side by side: their step times, their phases, their losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import min_max
from tdbg_lab.analysis.phases import step_times, training_spans, with_own_time
from tdbg_lab.records import Kind, Mode
from tdbg_lab.views.labels import count, cut, full, number, percent, safe, short
from tdbg_lab.views.palette import pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import WINDOW, recent_spans
from tdbg_lab.views.registry import view
from tdbg_lab.views.run_names import run_names
from tdbg_lab.views.style import describe, empty, new_figure, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["compare_view"]

_BINS = 60
_MOST_PHASES = 10
_MOST_LOSSES = 4
_POINTS = 1000
_MOST_CHARS = 40
"""Of the name of a run in a caption."""
_SAME = 0.02
"""Share of the usual step below which two times count as the same."""
_DASH = {Mode.TRAIN: "solid", Mode.EVAL: "dash"}
_WORDS = {"data": "data loading", "eval": "evaluation", "optimizer": "the optimizer"}


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs."""

    run: Run
    name: str
    """Plain text; different from the other one's."""
    colour: str
    ms: NDArray[np.float64]
    """Duration of each step, shape ``(S,)``."""
    phases: dict[str, float]
    """Time of each phase in a step without the phases within it, mean, ms."""

    def share(self, phase: str) -> float:
        """Share of a phase in all phases, 0 to 1."""
        return self.phases.get(phase, 0.0) / (sum(self.phases.values()) or 1.0)


@view(
    "compare",
    title="Two runs",
    description="Phases, step times and losses of this run beside those of another one.",
    params=(
        Param("other", "Compare with", "run", help="The other run."),
        Param(
            "show",
            "Show",
            "choice",
            "phases",
            choices=("phases", "steps", "losses"),
            choice_labels=("Phases", "Step times", "Losses"),
        ),
        WINDOW,
    ),
)
def compare_view(
    run: Run, *, other: Run | None = None, show: str = "phases", window_s: int = 1800
) -> go.Figure:
    """Both runs in one plot, and in words what differs most. Each has its own window."""
    if other is None:
        return empty("Choose the run to compare with.", "Both are then drawn side by side.")
    if other.info.id == run.info.id:
        return empty("This is the same run on both sides.", "Choose another run to compare with.")
    left, right = _sides(run, other, window_s)
    if show == "losses":
        return _losses(left, right)
    for side in (left, right):
        if not len(side.ms):
            return empty(
                f"No step of {cut(side.name, _MOST_CHARS)} was timed.",
                "Steps are timed by attach(..., profiler=True), the default. Losses can be compared without.",
            )
    figure = _phases(left, right) if show == "phases" else _steps(left, right)
    return describe(figure, _words(left, right), x_axes=())


def _sides(run: Run, other: Run, window_s: int) -> tuple[_Side, _Side]:
    both = (run, other)
    left, right = (
        _side(each, name, pick(index), window_s)
        for index, (each, name) in enumerate(zip(both, run_names(both), strict=True))
    )
    return left, right


def _side(run: Run, name: str, colour: str, window_s: int) -> _Side:
    spans = training_spans(recent_spans(run, window_s))
    phases: dict[str, float] = {}
    if len(spans):
        frame = with_own_time(spans)
        steps = max(frame.groupby(["rank", "step"]).ngroups, 1)
        summed = frame.groupby("phase")["time"].sum() / steps / 1e6
        phases = {str(phase): float(ms) for phase, ms in summed.items()}
    return _Side(run, name, colour, step_times(spans).duration_s * 1e3, phases)


def _phases(left: _Side, right: _Side) -> go.Figure:
    """Milliseconds of each phase in a step, the longest first."""
    longest = {name: max(left.phases.get(name, 0), right.phases.get(name, 0)) for name in _both(left, right)}
    names = sorted(longest, key=lambda name: -longest[name])[:_MOST_PHASES]
    traces = [
        {
            "type": "bar",
            "x": [safe(name) for name in names],
            "y": [side.phases.get(name, 0.0) for name in names],
            "name": short(side.name),
            "marker": {"color": side.colour, "line": {"width": 0}},
            "text": [percent(side.share(name)) for name in names],
            "textposition": "auto",
            "hovertemplate": "%{x}: <b>%{y:.4~g} ms</b> a step, %{text}"
            f"<extra>{short(side.name)}</extra>",
        }
        for side in (left, right)
    ]
    figure = new_figure(traces, barmode="group", bargap=0.25, showlegend=True)
    figure.update_layout(xaxis={"type": "category"}, yaxis={"title": {"text": "Time in a step (ms)"}})
    return figure


def _both(left: _Side, right: _Side) -> list[str]:
    return list(dict.fromkeys([*left.phases, *right.phases]))


def _steps(left: _Side, right: _Side) -> go.Figure:
    """Histograms over the same bins, as shares: one run may have many more steps."""
    values = np.concatenate([left.ms, right.ms])
    low, high = float(values.min()), float(np.percentile(values, 99))
    edges = np.linspace(low, high if high > low else low + max(low * 0.01, 1e-3), _BINS + 1)
    traces: list[dict[str, Any]] = []
    for side in (left, right):
        counts, _ = np.histogram(np.minimum(side.ms, edges[-1]), edges)
        traces.append(
            {
                "type": "bar",
                "x": (edges[:-1] + edges[1:]) / 2,
                "y": 100 * counts / len(side.ms),
                "width": float(edges[1] - edges[0]),
                "name": short(side.name),
                "marker": {"color": side.colour, "line": {"width": 0}},
                "opacity": 0.6,
                "hovertemplate": "<b>%{y:.3~g}%</b> of the steps take about %{x:.4~g} ms"
                f"<extra>{short(side.name)}</extra>",
            }
        )
    figure = new_figure(traces, barmode="overlay", bargap=0, showlegend=True)
    figure.update_layout(
        xaxis={"title": {"text": "Duration of a step (ms); the last bin holds all longer ones"}},
        yaxis={"title": {"text": "Share of the steps (%)"}, "rangemode": "tozero"},
    )
    return figure


def _losses(left: _Side, right: _Side) -> go.Figure:
    every = _common_losses(left.run, right.run)
    names = every[:_MOST_LOSSES]
    if not names:
        return empty(
            "The two runs have no loss in common.",
            "A loss is one by its name: give attach() the same loss in both, or log it under the same name.",
        )
    traces = [line for side in (left, right) for name in names for line in _lines(side, name, names)]
    ends = [int(trace["x"][at]) for trace in traces for at in (0, -1)]
    if not ends:
        return empty("The two runs have no value of a loss yet.", "The picture appears with the first one.")
    figure = new_figure(traces, xaxis=step_axis(ends), hovermode="x unified", showlegend=True)
    figure.update_layout(yaxis={"title": {"text": "Loss"}})
    ends_words = "; ".join(filter(None, (_end_words(left, right, name) for name in names)))
    timed = f" {_words(left, right)}" if len(left.ms) and len(right.ms) else ""
    more = f" {len(names)} of {len(every)} losses are drawn." if len(every) > len(names) else ""
    return describe(figure, f"{ends_words or 'No value is finite'}.{more}{timed}", x_axes=())


def _common_losses(run: Run, other: Run) -> list[str]:
    there = {key.name for key in other.tensors(kind=(Kind.LOSS, Kind.SCALAR))}
    here = [key for key in run.tensors(kind=(Kind.LOSS, Kind.SCALAR)) if key.name in there]
    return [key.name for key in here if key.kind == Kind.LOSS or "loss" in key.name.lower()]


def _lines(side: _Side, name: str, names: Sequence[str]) -> list[dict[str, Any]]:
    traces = []
    label = short(side.name) + (f": {short(name)}" if len(names) > 1 else "")
    for mode, dash in _DASH.items():
        series = side.run.scalars(name, mode=mode)
        x, y = np.asarray(series.steps), np.asarray(series.values, dtype=np.float64)
        if not len(x):
            continue
        kept = min_max(y, _POINTS, x=x.astype(np.float64))
        word = " (eval)" if mode is Mode.EVAL else ""
        traces.append(
            {
                "type": "scatter",
                "mode": "lines" if len(kept) > 1 else "markers",
                "x": x[kept],
                "y": np.where(np.isfinite(y), y, np.nan)[kept],
                "name": label + word,
                "line": {"color": side.colour, "width": 2, "dash": dash},
                "hovertemplate": f"{label}{word}, {full(name)}: <b>%{{y:.5g}}</b><extra></extra>",
            }
        )
    return traces


def _end_words(left: _Side, right: _Side, name: str) -> str:
    ends = []
    for side in (left, right):
        series = side.run.scalars(name)
        values = np.asarray(series.values, dtype=np.float64)
        finite = np.flatnonzero(np.isfinite(values))
        if not len(finite):
            return ""
        ends.append((values[finite[-1]], int(np.asarray(series.steps)[finite[-1]]), values[finite].min()))
    (value, step, least), (there, step_there, least_there) = ends
    return (
        f"{name} is {number(value)} at step {step:,} here and {number(there)} at step {step_there:,} in "
        f"{cut(right.name, _MOST_CHARS)}; at its least {number(least)} and {number(least_there)}"
    )


def _words(left: _Side, right: _Side) -> str:
    """What differs most, in one or two sentences."""
    here, there = float(np.median(left.ms)), float(np.median(right.ms))
    other = cut(right.name, _MOST_CHARS)
    text = f"A step takes {number(here, 3)} ms here and {number(there, 3)} ms in {other} (median of "
    text += f"{count(len(left.ms), 'step')} and {len(right.ms):,})"
    apart = {name: left.phases.get(name, 0.0) - right.phases.get(name, 0.0) for name in _both(left, right)}
    most = max(apart, key=lambda name: abs(apart[name]), default="")
    if not most or abs(apart[most]) < _SAME * max(here, there):
        return f"{text}; no phase differs by more than {100 * _SAME:g}% of a step."
    told = _WORDS.get(most, most)
    return (
        f"{text}. What differs most: {told} takes {percent(left.share(most))} of a step here "
        f"({number(left.phases.get(most, 0.0), 3)} ms), {percent(right.share(most))} there "
        f"({number(right.phases.get(most, 0.0), 3)} ms)."
    )
