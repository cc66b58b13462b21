"""Comparison of a tensor's values at chosen steps: cumulative curves or outlines, and how far they moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.cumulative import quantile_lines, smooth_rebin
from tdbg_lab.analysis.value_axis import ValueAxis
from tdbg_lab.views.common import DISTRIBUTED, MODE, RANK, SCALE, STEP, chosen_tensor, mode_of
from tdbg_lab.views.labels import number, short
from tdbg_lab.views.palette import pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.slices import blocks_at, chosen_steps
from tdbg_lab.views.style import describe, empty, new_figure, nothing_yet, table_of, value_axis

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.analysis.value_axis import Scale
    from tdbg_lab.records import StatsBlock
    from tdbg_lab.run import Run

__all__ = ["distribution"]

_ROWS = 200
_DASHES = ("solid", "dash", "dot", "dashdot")


@view(
    "distribution",
    title="Distribution comparison",
    description="How the values of one tensor at a few steps differ.",
    params=(
        Param("tensor", "Tensor", "tensor", tensor_kinds=DISTRIBUTED),
        Param("at", "Steps", "steps", help="Steps to compare. Default: first, middle and last."),
        Param(
            "style",
            "Style",
            "choice",
            "ecdf",
            choices=("ecdf", "hist"),
            choice_labels=("Cumulative", "Histogram"),
        ),
        MODE,
        SCALE,
        RANK,
        STEP,
    ),
)
def distribution(
    run: Run,
    *,
    tensor: str | None = None,
    at: tuple[int, ...] | None = None,
    style: str = "ecdf",
    mode: str | None = None,
    scale: Scale = "signed_log",
    rank: int | None = None,
    step: int | None = None,
) -> go.Figure:
    """Curves of a few steps in one plot. Cumulative: the share of finite elements not above a value."""
    at_mode = mode_of(run, mode)
    name = chosen_tensor(run, tensor, mode=at_mode)
    if name is None:
        return nothing_yet(run, "tensors with histograms")
    steps = chosen_steps(run.steps(mode=at_mode, tensor=name), at, step, 3)[-12:]
    if not len(steps):
        return empty(f"{name} has no data in mode {at_mode}.", "Choose another mode.")
    block = blocks_at(run, name, steps, at_mode, rank)
    axis = ValueAxis.fit(block, scale)
    edges = axis.edges(_ROWS)
    share = smooth_rebin(block, axis, edges) / np.maximum(block.finite_count, 1)[:, None]
    lines = [
        _line(share[i], axis, edges, step=int(steps[i]), index=i, style=style) for i in range(len(steps))
    ]
    figure = new_figure(lines, title=short(name, 60))
    title = "Share of elements at or below" if style == "ecdf" else "Share of elements"
    figure.update_layout(
        xaxis=value_axis(axis, edges),
        yaxis={"title": {"text": title}, "tickformat": "~%", "rangemode": "tozero"},
        margin={"t": 62},
        showlegend=True,
    )
    return describe(figure, _caption(name, block, steps), step=step, x_axes=(), tensor=name)


def _line(
    share: NDArray[np.float64],
    axis: ValueAxis,
    edges: NDArray[np.float64],
    *,
    step: int,
    index: int,
    style: str,
) -> dict[str, Any]:
    if style == "ecdf":
        x, y = edges, np.concatenate(([0.0], np.cumsum(share)))
        verb = "at or below"
    else:
        x, y = (edges[:-1] + edges[1:]) / 2, share
        verb = "around"
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": np.minimum(y, 1.0),
        "customdata": axis.inverse(x),
        "meta": table_of(x="customdata"),
        "name": f"step {step:,}",
        "line": {
            "color": pick(index),
            "width": 2,
            "dash": _DASHES[index // 8 % 4],
        },
        "hovertemplate": f"step {step:,}: <b>%{{y:.1%}}</b> {verb} %{{customdata:.3g}}<extra></extra>",
    }


def _caption(name: str, block: StatsBlock, steps: NDArray[np.int64]) -> str:
    """How far the last of the steps is from the first, in units of the first one's spread."""
    if len(steps) < 2:
        return f"{name} at step {int(steps[0]):,}; choose more steps to compare."
    levels = quantile_lines(block, list(np.linspace(0.005, 0.995, 100)))
    moved = float(np.abs(levels[-1] - levels[0]).mean())
    spread = float(block.std[0])
    if not np.isfinite(moved):
        return f"{name} at {len(steps)} steps; one of them has no finite value."
    relative = f", {number(moved / spread, 3)} times its first standard deviation" if spread > 0 else ""
    first, last = int(steps[0]), int(steps[-1])
    words = f"from step {first:,} to step {last:,} values moved by {number(moved, 3)} on average"
    return f"{name}: {words}{relative}."
