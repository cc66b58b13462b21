"""Scalars over steps: losses, metrics, learning rates."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import min_max
from tdbg_lab.records import Kind, Mode
from tdbg_lab.views.common import MODE_DASH, MODE_WORD, RANK, REGEX, STEP, STEP_RANGE, points, step_bounds
from tdbg_lab.views.labels import count, full, number, of_more, short
from tdbg_lab.views.palette import pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure, not_finite_marks, nothing_yet, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.records import TensorKey
    from tdbg_lab.run import Run

__all__ = ["scalars", "smooth"]

_GROUPS = ("Loss", "Metric", "Learning rate", "Gradient norm", "Update ratio", "Optimizer", "Cost")
_SHORT_TITLES = {"Learning rate": "LR", "Gradient norm": "Gradient", "Update ratio": "Update"}
"""Beside a low plot there is little room."""
_DEFAULT_GROUPS = frozenset({"Loss", "Metric", "Learning rate"})
_RATES = "optimizer/lr/"
_MOST = 24
_MOST_RATES = 4
"""Learning rates of an optimizer with many groups, as one for each layer, that are shown unless asked for."""
_BOOKKEEPING = re.compile(
    r"(^|[_/])(epoch|runtime|total_flos|num_input_tokens_seen)$|^epoch/number$|_per_second$"
)
"""What trainers log beside metrics: shown when it is asked for."""
_MISSING = {
    "": "Give attach() the loss, or log numbers: handle.log(accuracy=...).",
    "xgboost": "Give the training an evaluation set: evals=[...], or eval_set=[...] of an estimator.",
    "lightgbm": "Give the training an evaluation set: valid_sets=[...] of lightgbm.train, or the one of fit.",
}
"""What to do about it, by framework."""
_KINDS = (Kind.LOSS.value, Kind.SCALAR.value, Kind.OPTIMIZER.value, Kind.COST.value)


@view(
    "scalars",
    title="Scalars",
    description="Losses, metrics and learning rates over steps.",
    axis="step",
    params=(
        Param(
            "tensors",
            "Scalars",
            "tensors",
            tensor_kinds=_KINDS,
            help="Default: losses, metrics, learning rates, without times and counts of trainers.",
        ),
        REGEX,
        Param(
            "mode",
            "Mode",
            "choice",
            choices=("train", "eval", "predict"),
            help="Default: all, as line styles.",
        ),
        STEP_RANGE,
        Param("log_y", "Logarithmic y", "bool", default=False),
        Param(
            "smoothing",
            "Smoothing",
            "int",
            0,
            minimum=0,
            maximum=99,
            help="Percent; the raw line stays, faint.",
        ),
        RANK,
        STEP,
        points(1000),
    ),
)
def scalars(
    run: Run,
    *,
    tensors: tuple[str, ...] | None = None,
    regex: str | None = None,
    mode: str | None = None,
    steps: tuple[float | None, float | None] | None = None,
    log_y: bool = False,
    smoothing: int = 0,
    rank: int | None = None,
    step: int | None = None,
    n_out: int = 1000,
) -> go.Figure:
    """Lines over steps, one plot for each sort of scalar.

    Modes are line styles (train solid, eval dashed, predict dotted); NaN and infinities are marked where they
    happened and never left out.
    """
    every = _chosen(run, tensors, regex)
    keys = (every if tensors or regex is not None else _first_what_counts(every))[:_MOST]
    if not keys:
        if run.tensors() and not regex:
            return empty("No scalars here.", _MISSING.get(run.info.framework, _MISSING[""]))
        return nothing_yet(run, "scalars", regex)
    asked = _Asked(
        modes=tuple([Mode(mode)] if mode is not None else run.modes()),
        bounds=step_bounds(steps),
        log_y=log_y,
        smoothing=smoothing / 100,
        rank=rank,
        n_out=n_out,
    )
    groups: dict[str, list[TensorKey]] = {name: [] for name in _GROUPS}
    for key in keys:
        groups[_group(key)].append(key)
    names = [name for name in _GROUPS if groups[name]]
    in_order = [(row, key) for row, name in enumerate(names) for key in groups[name]]
    traces = [
        trace
        for index, (row, key) in enumerate(in_order)
        for trace in _lines(run, key, asked, colour=pick(index), yaxis=f"y{row + 1}" if row else "y")
    ]
    if not traces:
        return empty("No values in this range.", "Choose other steps or another mode.")
    ends = [int(trace["x"][at]) for trace in traces for at in (0, -1)]
    figure = new_figure(
        traces,
        heights=[1.0 if row else 2.0 for row in range(len(names))],
        xaxis=step_axis(ends),
        hovermode="x unified",
        margin={"t": 30},
        **_value_axes(names, traces, log_y=log_y),
    )
    return describe(figure, _caption(traces[0], in_order[0][1].name, len(keys), len(every)), step=step)


def _value_axes(names: Sequence[str], traces: Sequence[dict[str, Any]], *, log_y: bool) -> dict[str, Any]:
    """The y axis of each plot, by its name in the layout."""
    axes: dict[str, Any] = {}
    for row, name in enumerate(names):
        plot = str(row + 1) if row else ""
        values = np.concatenate([trace["y"] for trace in traces if trace["yaxis"] == f"y{plot}"])
        axes[f"yaxis{plot}"] = {
            "title": {"text": _SHORT_TITLES.get(name, name) if row else name},
            "type": "log" if log_y else "linear",
            **_room(values, log_y=log_y),
            # else plotly writes a learning rate of 1e-5 as 10μ; of a million tokens 1M reads well
            **({"exponentformat": "e"} if (np.abs(values[np.isfinite(values)]) < 1).all() else {}),
            **({"nticks": 4} if row else {}),
        }
    return axes


@dataclass(frozen=True, slots=True)
class _Asked:
    """What holds for every line of the figure."""

    modes: tuple[Mode, ...]
    bounds: tuple[int, int] | None
    log_y: bool
    smoothing: float
    rank: int | None
    n_out: int


def smooth(x: NDArray[np.int64], values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Exponential moving average without the pull of its start; what is not finite is passed over.

    The average fades with the distance along x, not with the number of values: a line with few values (eval)
    is smoothed as much as one with many (train).

    Parameters
    ----------
    x
        Steps, ascending, shape ``(S,)``.
    values
        Shape ``(S,)``.
    share
        How much of the average is left after a 400th of the steps drawn, 0 (no smoothing) to below 1.
    """
    answer = np.full(len(values), np.nan)
    unit = max(float(x[-1] - x[0]) / 400, 1e-9)
    total, weight, last = 0.0, 0.0, float(x[0])
    for i, (at, value) in enumerate(zip(x.tolist(), values.tolist(), strict=True)):
        if np.isfinite(value):
            kept = share ** ((at - last) / unit) if weight else 0.0
            total, weight, last = kept * total + (1 - share) * value, kept * weight + (1 - share), at
        if weight:
            answer[i] = total / weight
    return answer


def _chosen(run: Run, tensors: Sequence[str] | None, regex: str | None) -> list[TensorKey]:
    keys = [key for key in run.tensors(regex=regex) if key.kind in _KINDS]
    if tensors:
        wanted = set(tensors)
        return [key for key in run.tensors() if key.name in wanted]
    if regex is None:
        default = [
            key for key in keys if _group(key) in _DEFAULT_GROUPS and not _BOOKKEEPING.search(key.name)
        ]
        keys = default or [key for key in keys if _group(key) != "Cost"]
    return keys


def _first_what_counts(keys: Sequence[TensorKey]) -> list[TensorKey]:
    """What is trained on before the parts of it; of many learning rates the first, the last, some between."""
    rates = [key for key in keys if key.name.startswith(_RATES)]
    spread = np.linspace(0, len(rates) - 1, min(len(rates), _MOST_RATES)).round().astype(int).tolist()
    shown = {rates[index].name for index in spread}
    kept = [key for key in keys if key.name in shown or not key.name.startswith(_RATES)]
    return sorted(kept, key=lambda key: key.kind != Kind.LOSS)


def _group(key: TensorKey) -> str:
    if key.kind == Kind.LOSS:
        return "Loss"
    if key.kind == Kind.COST or key.name.startswith("tdbg/"):
        return "Cost"
    if key.name.startswith("optimizer/grad_norm"):
        return "Gradient norm"
    if key.name.startswith("optimizer/update_ratio"):
        return "Update ratio"
    if key.name.startswith(_RATES) or key.name.rsplit("/", 1)[-1].lower() in {"lr", "learning_rate"}:
        return "Learning rate"
    if key.kind == Kind.OPTIMIZER:  # moments, the scale of the loss, steps left out
        return "Optimizer"
    return "Loss" if "loss" in key.name.lower() else "Metric"


def _lines(run: Run, key: TensorKey, asked: _Asked, *, colour: str, yaxis: str) -> list[dict[str, Any]]:
    """Traces of one scalar, in each mode that it has."""
    traces = []
    for mode in asked.modes:
        series = run.scalars(key.name, mode=mode, rank=asked.rank)
        x, y = np.asarray(series.steps), np.asarray(series.values, dtype=np.float64)
        if asked.bounds is not None:
            inside = (x >= asked.bounds[0]) & (x <= asked.bounds[1])
            x, y = x[inside], y[inside]
        if not len(x):
            continue
        kept = min_max(y, asked.n_out, x=x.astype(np.float64))
        shown = np.where(np.isfinite(y), y, np.nan)
        line = _style(key.name, mode, colour) | {"yaxis": yaxis, "x": x[kept], "y": shown[kept]}
        if len(kept) == 1:
            line["mode"] = "markers"
        if asked.smoothing:
            faint = {"opacity": 0.3, "showlegend": False, "hoverinfo": "skip", "hovertemplate": None}
            traces += [line | faint, line | {"y": smooth(x, y, asked.smoothing)[kept]}]
        else:
            traces.append(line)
        traces += not_finite_marks(x[kept], y[kept], key.name, yaxis=yaxis, positive=asked.log_y)
    return traces


def _style(name: str, mode: Mode, colour: str) -> dict[str, Any]:
    label = short(name) + MODE_WORD[mode]
    return {
        "type": "scatter",
        "mode": "lines",
        "xaxis": "x",
        "name": label,
        "legendgroup": label,
        "line": {"color": colour, "width": 2, "dash": MODE_DASH[mode]},
        "marker": {"color": colour, "size": 7},
        "hovertemplate": f"{full(name)}{MODE_WORD[mode]}: <b>%{{y:.5g}}</b><extra></extra>",
    }


def _room(values: NDArray[np.float64], *, log_y: bool) -> dict[str, Any]:
    """A range around a single value (a constant learning rate), which would otherwise stand in -1 to 1."""
    finite = values[np.isfinite(values)]
    if log_y or not len(finite) or finite.min() != finite.max() or finite[0] == 0:
        return {}
    return {"range": sorted((0.0, 2 * float(finite[0])))}


def _caption(trace: dict[str, Any], name: str, drawn: int, there: int) -> str:
    """The number of scalars, and where the first one stands."""
    value = float(trace["y"][-1])
    stands = number(value) if math.isfinite(value) else "not finite"
    shown = f"{count(drawn, 'scalar')}{of_more(drawn, there)}"
    return f"{shown} over steps; {name} is {stands} at step {int(trace['x'][-1]):,}."
