"""One scalar of several runs: their curves over each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import min_max
from tdbg_lab.records import Kind, Mode
from tdbg_lab.views.common import MODE_DASH, MODE_WORD, points
from tdbg_lab.views.labels import cut, full, number, short
from tdbg_lab.views.palette import SERIES, pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.run_names import run_names
from tdbg_lab.views.run_settings import run_differences
from tdbg_lab.views.scalars import smooth
from tdbg_lab.views.style import describe, empty, new_figure, not_finite_marks, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["runs_view"]

_KINDS = (Kind.LOSS, Kind.SCALAR, Kind.OPTIMIZER)
_MOST_CHARS = 40
"""Of a name in the caption."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """One scalar of one run in one mode."""

    run: int
    mode: Mode
    x: NDArray[Any]
    """Steps, or seconds since the run began, shape ``(S,)``."""
    y: NDArray[np.float64]


@view(
    "runs",
    title="Several runs",
    description="One loss or metric of several runs, over steps or time.",
    params=(
        Param("others", "Other runs", "runs", help="Each is a line beside that of this run; at most 15."),
        Param(
            "tensor",
            "Scalar",
            "tensor",
            tensor_kinds=tuple(kind.value for kind in _KINDS),
            help="Default: the first loss that most of the runs have.",
        ),
        Param(
            "along",
            "Along",
            "choice",
            "steps",
            choices=("steps", "time"),
            choice_labels=("Steps", "Time"),
            help="Time is counted from where each run began.",
        ),
        Param("mode", "Mode", "choice", choices=("train", "eval", "predict"), help="Default: all."),
        Param("log_y", "Logarithmic y", "bool", default=False),
        Param("smoothing", "Smoothing", "int", 0, minimum=0, maximum=99, help="Percent."),
        points(1000),
    ),
)
def runs_view(
    run: Run,
    *,
    others: tuple[Run, ...] | None = None,
    tensor: str | None = None,
    along: str = "steps",
    mode: str | None = None,
    log_y: bool = False,
    smoothing: int = 0,
    n_out: int = 1000,
) -> go.Figure:
    """A line for each run and mode, this run's above the others; thin ones where colours repeat."""
    runs = [run, *(each for each in others or () if each.info.id != run.info.id)]
    if len(runs) == 1:
        return empty(
            "Choose the runs to draw beside this one.",
            "One scalar of all of them is then drawn, such as the losses of a search over learning rates.",
        )
    name = tensor or _usual(runs)
    if name is None:
        return empty("None of the runs has a loss or a metric.", "Give attach() the loss, or log numbers.")
    modes = tuple(Mode) if mode is None else (Mode(mode),)
    curves = [curve for at in range(len(runs)) for curve in _curves(runs[at], at, name, modes, along)]
    if not curves:
        return empty(f"No run has a value of {cut(name, _MOST_CHARS)} yet.", "Choose another scalar or mode.")
    names = run_names(runs)
    told = [f"{own} [{of}]" if of else own for own, of in zip(names, run_differences(runs), strict=True)]
    unit = ""
    if along == "time":
        unit, seconds = _unit(curves)
        curves = [replace(curve, x=curve.x / seconds) for curve in curves]
    traces = [
        trace
        for curve in curves
        for trace in _traces(
            curve, told[curve.run], unit, smoothing=smoothing / 100, n_out=n_out, log_y=log_y
        )
    ]
    ends = [trace["x"][at] for trace in traces for at in (0, -1)]
    figure = new_figure(
        traces,
        xaxis={"title": {"text": f"Time since the run began ({unit})"}} if unit else step_axis(ends),
        yaxis={"title": {"text": short(name)}, "type": "log" if log_y else "linear"},
        hovermode="closest" if unit else "x unified",
        showlegend=True,
    )
    return describe(figure, _caption(curves, names, name, len(runs)), x_axes=(), tensor=name)


def _usual(runs: Sequence[Run]) -> str | None:
    """The loss that most of the runs have, else the metric."""
    for kind in (Kind.LOSS, Kind.SCALAR):
        often = Counter(
            name for each in runs for name in dict.fromkeys(key.name for key in each.tensors(kind=kind))
        )
        if often:
            return max(often, key=lambda name: often[name])  # the first of those that are as frequent
    return None


def _curves(run: Run, at: int, name: str, modes: Sequence[Mode], along: str) -> list[_Curve]:
    if name not in set(run.tensor_names()):
        return []
    found = []
    for mode in modes:
        series = run.scalars(name, mode=mode)
        steps, values = np.asarray(series.steps), np.asarray(series.values, dtype=np.float64)
        if len(steps):
            x = steps if along == "steps" else (np.asarray(series.time_ns) - run.info.created_ns) / 1e9
            found.append(_Curve(at, mode, x, values))
    return found


def _unit(curves: Sequence[_Curve]) -> tuple[str, float]:
    """In what the longest of the runs is told, and its length in seconds."""
    longest = max(float(curve.x[-1]) for curve in curves)
    units = (("h", 3600.0), ("min", 60.0))
    return next((unit for unit in units if longest > 3 * unit[1]), ("s", 1.0))


def _traces(
    curve: _Curve, told: str, unit: str, *, smoothing: float, n_out: int, log_y: bool
) -> list[dict[str, Any]]:
    """The line of a curve, and marks where it is not finite."""
    kept = min_max(curve.y, n_out, x=curve.x.astype(np.float64))
    y = smooth(curve.x, curve.y, smoothing) if smoothing else np.where(np.isfinite(curve.y), curve.y, np.nan)
    colour, whole = pick(curve.run), f"{full(told)}{MODE_WORD[curve.mode]}"
    when = f"after %{{x:.4~g}} {unit}" if unit else "step %{x:,d}"
    line = {
        "type": "scatter",
        "mode": "lines" if len(kept) > 1 else "markers",
        "x": curve.x[kept],
        "y": y[kept],
        "name": short(told, 60) + MODE_WORD[curve.mode],
        "zorder": 0 if curve.run else 1,
        "line": {
            "color": colour,
            "width": 2 if curve.run < len(SERIES) else 1,
            "dash": MODE_DASH[curve.mode],
        },
        "marker": {"color": colour, "size": 7},
        "hovertemplate": f"{whole}: <b>%{{y:.5g}}</b>{f' {when}' if unit else ''}<extra></extra>",
    }
    marks = not_finite_marks(curve.x[kept], curve.y[kept], told, positive=log_y, where=when)
    return [line, *marks]


def _caption(curves: Sequence[_Curve], names: Sequence[str], name: str, n_runs: int) -> str:
    """Between which values the runs stand, and how many have none."""
    last = {
        curve.run: float(finite[-1])
        for curve in reversed(curves)  # training comes first and counts, where there is some
        if len(finite := curve.y[np.isfinite(curve.y)])
    }
    having = len({curve.run for curve in curves})
    text = f"{cut(name, _MOST_CHARS)} of {having} of {n_runs} runs"
    if not last:
        return f"{text}; no value is finite."
    low, high = min(last, key=last.__getitem__), max(last, key=last.__getitem__)
    ends = f"{number(last[low])} in {cut(names[low], _MOST_CHARS)}"
    if high != low:
        ends += f" to {number(last[high])} in {cut(names[high], _MOST_CHARS)}"
    return f"{text}; at the end {ends}."
