"""Histograms of one tensor at chosen steps, behind each other or on top of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.cumulative import smooth_rebin
from tdbg_lab.analysis.downsample import evenly
from tdbg_lab.analysis.value_axis import ValueAxis
from tdbg_lab.stats import concat, empty_block
from tdbg_lab.views.common import (
    DISTRIBUTED,
    MODE,
    RANK,
    SCALE,
    STEP,
    chosen_tensor,
    mode_of,
    near_step,
)
from tdbg_lab.views.labels import number, percent, short
from tdbg_lab.views.palette import ACCENT, SEQUENTIAL, faded, ramp
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure, nothing_yet, table_of, value_axis

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.analysis.value_axis import Scale
    from tdbg_lab.records import Mode, StatsBlock
    from tdbg_lab.run import Run

__all__ = ["blocks_at", "chosen_steps", "slices"]

_ROWS = 120
_OVERLAP = 2.2
"""Height of the tallest ridge, in distances between ridges."""


@view(
    "slices",
    title="Histogram slices",
    description="The histogram of one tensor at several steps, from early (back) to late (front).",
    params=(
        Param("tensor", "Tensor", "tensor", tensor_kinds=DISTRIBUTED),
        MODE,
        SCALE,
        Param(
            "style",
            "Style",
            "choice",
            "ridge",
            choices=("ridge", "overlay"),
            choice_labels=("Ridges", "Overlaid"),
        ),
        Param("at", "Steps", "steps", help="Which steps. Default: evenly spread."),
        Param("slices", "How many", "int", 16, minimum=1, maximum=60, help="When no steps are chosen."),
        RANK,
        STEP,
    ),
)
def slices(
    run: Run,
    *,
    tensor: str | None = None,
    mode: str | None = None,
    scale: Scale = "signed_log",
    style: str = "ridge",
    at: tuple[int, ...] | None = None,
    slices: int = 16,
    rank: int | None = None,
    step: int | None = None,
) -> go.Figure:
    """One curve for each step; the shared step stands out."""
    at_mode = mode_of(run, mode)
    name = chosen_tensor(run, tensor, mode=at_mode)
    if name is None:
        return nothing_yet(run, "tensors with histograms")
    chosen = chosen_steps(run.steps(mode=at_mode, tensor=name), at, step, slices)
    if not len(chosen):
        return empty(f"{name} has no data in mode {at_mode}.", "Choose another mode.")
    block = blocks_at(run, name, chosen, at_mode, rank)
    shown = near_step(chosen, step)
    axis = ValueAxis.fit(block, scale)
    edges = axis.edges(_ROWS)
    share = smooth_rebin(block, axis, edges) / np.maximum(block.finite_count, 1)[:, None]
    traces = (
        _ridges(share, axis, edges, chosen, shown)
        if style == "ridge"
        else _overlay(share, axis, edges, chosen, shown)
    )
    figure = new_figure(traces, title=short(name, 60))
    figure.update_layout(xaxis=value_axis(axis, edges), showlegend=False)
    if style == "ridge":
        labelled = evenly(len(chosen), 9)
        figure.update_layout(
            yaxis={
                "title": {"text": "Step"},
                "tickmode": "array",
                "tickvals": len(chosen) - 1 - labelled,
                "ticktext": [f"{int(chosen[i]):,}" for i in labelled],
                "showgrid": False,
            }
        )
    else:
        figure.update_layout(
            yaxis={"title": {"text": "Share of elements"}, "tickformat": "~%", "rangemode": "tozero"}
        )
    return describe(figure, _caption(name, block, chosen, shown), step=shown, x_axes=(), tensor=name)


def chosen_steps(
    steps: NDArray[np.int64], at: tuple[int, ...] | None, step: int | None, most: int
) -> NDArray[np.int64]:
    """The saved steps to draw, ascending: those nearest to `at`, or `most` evenly spread and the shared one.

    Parameters
    ----------
    steps
        All saved steps, ascending.
    """
    if not len(steps):
        return steps
    wanted = (
        {near_step(steps, each) for each in at} if at else {int(s) for s in steps[evenly(len(steps), most)]}
    )
    if step is not None:
        wanted.add(near_step(steps, step))
    return np.array(sorted(wanted), dtype=np.int64)


def blocks_at(run: Run, name: str, steps: NDArray[np.int64], mode: Mode, rank: int | None) -> StatsBlock:
    """Statistics of `name` at exactly these steps, one row each."""
    tensor = run.tensor(name)
    found = (tensor.histograms(mode=mode, steps=(step, step), rank=rank) for step in steps.tolist())
    return concat([each.block if len(each) else empty_block(1) for each in found])


def _ridges(
    share: NDArray[np.float64],
    axis: ValueAxis,
    edges: NDArray[np.float64],
    steps: NDArray[np.int64],
    shown: int,
) -> list[dict[str, Any]]:
    """Filled curves, the first step at the back (top), the last in front (bottom)."""
    middle, values = _places(axis, edges)
    # a spike of exact zeros is cut, so that the rest keeps its height
    tallest = float(np.sort(share, axis=1)[:, -2].max()) or 1.0
    colours = ramp(SEQUENTIAL, len(steps))
    traces: list[dict[str, Any]] = []
    for i, step in enumerate(steps.tolist()):
        is_shown = step == shown
        colour = ACCENT if is_shown else colours[i]
        floor = float(len(steps) - 1 - i)
        height = np.minimum(share[i] / tallest, 1.25) * (_OVERLAP if len(steps) > 1 else 1.0)
        line = {"type": "scatter", "x": middle, "mode": "lines"}
        base = {"y": np.full(len(middle), floor), "hoverinfo": "skip", "line": {"width": 0}}
        base["meta"] = table_of(skip=True)
        curve = {
            "y": floor + height,
            "fill": "tonexty",
            "fillcolor": faded(colour, 0.85 if is_shown else 0.7),
            "line": {"width": 2.4 if is_shown else 1.2, "color": colour},
            "customdata": np.column_stack((values, share[i])),
            "name": f"step {step:,}",
            "hovertemplate": f"step {step:,}<br>value about %{{customdata[0]:.3g}}"
            "<br><b>%{customdata[1]:.2%}</b> of elements<extra></extra>",
            "meta": table_of(x="customdata.0", y="customdata.1"),
        }
        traces += [line | base, line | curve]
    return traces


def _overlay(
    share: NDArray[np.float64],
    axis: ValueAxis,
    edges: NDArray[np.float64],
    steps: NDArray[np.int64],
    shown: int,
) -> list[dict[str, Any]]:
    """Outlines on one base line, the shared step last and filled."""
    middle, values = _places(axis, edges)
    colours = ramp(SEQUENTIAL, len(steps))
    order = [i for i in range(len(steps)) if int(steps[i]) != shown]
    order += [i for i in range(len(steps)) if int(steps[i]) == shown]
    return [
        {
            "type": "scatter",
            "x": middle,
            "y": share[i],
            "mode": "lines",
            "name": f"step {int(steps[i]):,}",
            "line": {
                "width": 2.4 if int(steps[i]) == shown else 1.2,
                "color": ACCENT if int(steps[i]) == shown else colours[i],
            },
            "fill": "tozeroy" if int(steps[i]) == shown else "none",
            "fillcolor": faded(ACCENT, 0.2),
            "customdata": values,
            "meta": table_of(x="customdata"),
            "hovertemplate": f"step {int(steps[i]):,}<br>value about %{{customdata:.3g}}"
            "<br><b>%{y:.2%}</b> of elements<extra></extra>",
        }
        for i in order
    ]


def _places(axis: ValueAxis, edges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions and values of the middles of rows; the row around zero is exactly zero."""
    middle = (edges[:-1] + edges[1:]) / 2
    values = axis.inverse(middle)
    values[(edges[:-1] < 0) & (edges[1:] > 0)] = 0.0
    return middle, values


def _caption(name: str, block: StatsBlock, steps: NDArray[np.int64], shown: int) -> str:
    row = int(np.searchsorted(steps, shown))
    bad = int(block.count[row] - block.finite_count[row])
    words = [
        f"mean {number(float(block.mean[row]), 3)}",
        f"standard deviation {number(float(block.std[row]), 3)}",
    ]
    if block.zero_count[row]:
        words.append(f"{percent(int(block.zero_count[row]) / max(int(block.count[row]), 1))} zero")
    if bad:
        words.append(f"{bad:,} not finite")
    return f"{name} at {len(steps)} steps; step {shown:,} stands out: {', '.join(words)}."
