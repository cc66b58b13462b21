"""The histogram of one tensor over steps: a heat map of steps and values, with quantile lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.cumulative import quantile_lines
from tdbg_lab.analysis.downsample import spaced
from tdbg_lab.analysis.value_axis import ValueAxis, rebin
from tdbg_lab.views.common import (
    DISTRIBUTED,
    MODE,
    RANK,
    SCALE,
    STEP,
    STEP_RANGE,
    chosen_tensor,
    mode_of,
    points,
    step_bounds,
)
from tdbg_lab.views.labels import count, number, percent, short
from tdbg_lab.views.palette import ACCENT, BAD, MUTED, SEQUENTIAL, gamma
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import (
    colour_bar,
    describe,
    empty,
    float32,
    new_figure,
    nothing_yet,
    step_axis,
    table_of,
    value_axis,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.analysis.value_axis import Scale
    from tdbg_lab.records import Mode, StatsBlock
    from tdbg_lab.run import Run
    from tdbg_lab.store.reader import Steps

__all__ = ["QUANTILES", "histogram"]

QUANTILES = (
    ("min", 0.0),
    ("5% quantile", 0.05),
    ("25% quantile", 0.25),
    ("median", 0.5),
    ("75% quantile", 0.75),
    ("95% quantile", 0.95),
    ("max", 1.0),
)
_LINES = {
    0.5: ("median", ACCENT, 2.4, "solid"),
    0.25: ("25, 75%", ACCENT, 1.3, "solid"),
    0.05: ("5, 95%", ACCENT, 1.3, "dash"),
    0.0: ("min, max", MUTED, 1.2, "dot"),
}
"""Name in the legend, colour, width and dash of a pair of lines, by the quantile of the lower one."""
_ROWS = 80


@view(
    "histogram",
    title="Histogram over steps",
    description="How the values of one tensor are spread, step by step.",
    axis="step",
    params=(
        Param(
            "tensor",
            "Tensor",
            "tensor",
            tensor_kinds=DISTRIBUTED,
            help="Default: the first layer's activation.",
        ),
        MODE,
        SCALE,
        Param("quantiles", "Quantile lines", "bool", default=True),
        STEP_RANGE,
        RANK,
        STEP,
        points(300, 2000),
    ),
)
def histogram(
    run: Run,
    *,
    tensor: str | None = None,
    mode: str | None = None,
    scale: Scale = "signed_log",
    quantiles: bool = True,
    steps: tuple[float | None, float | None] | None = None,
    rank: int | None = None,
    step: int | None = None,
    n_out: int = 300,
) -> go.Figure:
    """Heat map of steps x values; each column is one step (or a few merged up to it) and sums to 100%.

    The share of zeros, NaN and infinities has its own plot below, where there are any.
    """
    at_mode = mode_of(run, mode)
    name = chosen_tensor(run, tensor, mode=at_mode)
    if name is None:
        return nothing_yet(run, "tensors with histograms")
    block, x = _read(run, name, at_mode, step_bounds(steps), rank=rank, n_out=n_out)
    if not len(x):
        return empty(f"{name} has no data in mode {at_mode} here.", "Choose another mode or other steps.")
    axis = ValueAxis.fit(block, scale)
    edges = axis.edges(_ROWS)
    shares = _share_traces(block, x)
    traces = [_heat(block, axis, edges, x), *(_lines(block, axis, x) if quantiles else []), *shares]
    layout: dict[str, Any] = {
        "xaxis": step_axis(x),
        "yaxis": value_axis(axis, edges),
        "margin": {"t": 62 if quantiles else 44},
    }
    if shares:
        layout["yaxis2"] = {
            "title": {"text": "Share"},
            "tickformat": ".0%",
            "range": [-0.04, 1.04],
            "nticks": 3,
        }
    figure = new_figure(traces, title=short(name, 60), heights=(4, 1) if shares else (1,), **layout)
    return describe(figure, _caption(name, block, x), step=step, tensor=name)


def _read(
    run: Run, name: str, mode: Mode, steps: Steps | None, *, rank: int | None, n_out: int
) -> tuple[StatsBlock, NDArray[np.int64]]:
    """At most `n_out` histograms, each of a step and those since the one before it, and their steps."""
    tensor = run.tensor(name)
    if steps is None:
        x, block = tensor.histogram_columns(n_out, mode=mode, rank=rank)
        return block, x
    x = tensor.steps(mode, steps=steps, rank=rank)
    kept = spaced(len(x), n_out)
    if len(kept) < len(x):
        return tensor.histograms_until(x[kept], mode=mode, steps=steps, rank=rank), x[kept]
    series = tensor.histograms(mode=mode, steps=steps, rank=rank)
    return series.block, series.steps


def _heat(
    block: StatsBlock, axis: ValueAxis, edges: NDArray[np.float64], x: NDArray[np.int64]
) -> dict[str, Any]:
    """The heat map: share of the finite elements of a step in each row, in percent."""
    table = rebin(block, axis, edges)
    totals = np.maximum(table.sum(axis=1, keepdims=True), 1)
    share = (100 * table / totals).T
    middle = (edges[:-1] + edges[1:]) / 2
    centre = axis.inverse(middle)
    zero_row = (edges[:-1] < 0) & (edges[1:] > 0)
    centre[zero_row] = 0.0
    # zeros of a ReLU would take the whole colour scale: the rest of the picture sets its end
    top = float(share[~zero_row].max(initial=0.0)) or float(share.max(initial=0.0)) or 1.0
    return {
        "type": "heatmap",
        "x": x,
        "y": middle,
        "z": np.where(share > 0, share, np.nan).astype(np.float32),
        "customdata": np.repeat(float32(centre)[:, None], len(x), axis=1),
        "zmin": 0,
        "zmax": top,
        "colorscale": gamma(SEQUENTIAL, 2.2),
        "colorbar": colour_bar("Share of elements", ticksuffix="%", nticks=6),
        "hoverongaps": False,
        "hovertemplate": "step %{x:,d}<br>value about %{customdata:.3g}"
        "<br><b>%{z:.2f}%</b> of elements<extra></extra>",
        "name": "share",
        "meta": table_of(y="customdata.0"),
        "zsmooth": False,
    }


def _lines(block: StatsBlock, axis: ValueAxis, x: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Quantile lines in pairs around the median; a dark edge keeps the median readable on every colour."""
    found = quantile_lines(block, [q for _, q in QUANTILES])
    mode = "lines" if len(x) > 1 else "markers"
    places = axis.forward(found)
    places[found[:, 0] == found[:, -1]] = np.nan  # a single value: lines would hide its row
    traces: list[dict[str, Any]] = []
    for column, (label, q) in enumerate(QUANTILES):
        group, colour, width, dash = _LINES[round(min(q, 1 - q), 2)]
        common: dict[str, Any] = {
            "type": "scatter",
            "x": x,
            "y": places[:, column],
            "mode": mode,
        }
        common |= {"name": group, "legendgroup": group, "hoverinfo": "skip", "showlegend": False}
        if q == 0.5:
            edge = {"color": "rgba(20,22,30,0.6)", "width": width + 2}
            marker = {"size": 9, "color": edge["color"]}
            traces.append(common | {"line": edge, "marker": marker, "meta": table_of(skip=True)})
        hover = f"{label} <b>%{{customdata:.4g}}</b> at step %{{x:,d}}<extra></extra>"
        traces.append(
            common
            | {
                "customdata": found[:, column],
                "line": {"color": colour, "width": width, "dash": dash},
                "marker": {"size": 7, "color": colour},
                "showlegend": q <= 0.5,
                "hoverinfo": None,
                "hovertemplate": hover,
                "meta": table_of(name=label, y="customdata"),
            }
        )
    return traces


def _share_traces(block: StatsBlock, x: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Shares of zeros, NaN and infinities over steps, those that ever happen."""
    total = np.maximum(block.count, 1)
    kinds = (
        ("zero", block.zero_count, MUTED, "solid"),
        ("NaN", block.nan_count, BAD, "solid"),
        ("inf", block.pos_inf_count + block.neg_inf_count, ACCENT, "dash"),
    )
    return [
        {
            "type": "scatter",
            "x": x,
            "y": counts / total,
            "yaxis": "y2",
            "mode": "lines" if len(x) > 1 else "markers",
            "name": label,
            "line": {"color": colour, "width": 2, "dash": dash},
            "marker": {"color": colour, "size": 6},
            "hovertemplate": f"{label} <b>%{{y:.2%}}</b> at step %{{x:,d}}<extra></extra>",
        }
        for label, counts, colour, dash in kinds
        if counts.any()
    ]


def _caption(name: str, block: StatsBlock, x: NDArray[np.int64]) -> str:
    """Where the tensor stands at the last step."""
    last = len(x) - 1
    total = max(int(block.count[last]), 1)
    reason = block.reason(last)
    if reason:
        return f"{name} at step {int(x[last]):,}: no statistics ({reason})."
    words = [
        f"mean {number(float(block.mean[last]), 3)}",
        f"standard deviation {number(float(block.std[last]), 3)}",
    ]
    for label, counts in (
        ("zero", block.zero_count),
        ("NaN", block.nan_count),
        ("infinite", block.pos_inf_count + block.neg_inf_count),
    ):
        if counts[last]:
            words.append(f"{percent(int(counts[last]) / total)} {label}")
    return f"{name} at step {int(x[last]):,}: {', '.join(words)}; {count(total, 'element')}."
