"""One statistic of chosen tensors over steps, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import evenly, min_max
from tdbg_lab.views.columns import CHOICE_LABELS, CHOICES, COLUMNS, Column
from tdbg_lab.views.common import (
    DISTRIBUTED,
    MODE,
    RANK,
    REGEX,
    STEP,
    STEP_RANGE,
    chosen_tensors,
    mode_of,
    points,
    step_bounds,
)
from tdbg_lab.views.labels import count, full, of_more, short_unique
from tdbg_lab.views.palette import SEQUENTIAL, SERIES, pick, ramp
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import (
    SIDE_LEGEND,
    describe,
    empty,
    new_figure,
    not_finite_marks,
    nothing_yet,
    step_axis,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.records import TensorKey
    from tdbg_lab.run import Run

__all__ = ["statistics"]

_MOST = 40
_DEFAULT = 12


@view(
    "statistics",
    title="Statistics over steps",
    description="One statistic of chosen tensors, step by step.",
    axis="step",
    params=(
        Param("tensors", "Tensors", "tensors", help="Default: gradients of the first layers."),
        REGEX,
        Param("statistic", "Statistic", "choice", "l2", choices=CHOICES, choice_labels=CHOICE_LABELS),
        MODE,
        Param("log_y", "Logarithmic y", "bool", help="Default: yes for norms and spreads."),
        STEP_RANGE,
        RANK,
        STEP,
        points(1000),
    ),
)
def statistics(
    run: Run,
    *,
    tensors: tuple[str, ...] | None = None,
    regex: str | None = None,
    statistic: str = "l2",
    mode: str | None = None,
    log_y: bool | None = None,
    steps: tuple[float | None, float | None] | None = None,
    rank: int | None = None,
    step: int | None = None,
    n_out: int = 1000,
) -> go.Figure:
    """A line for each tensor. Many tensors are coloured in layer order, a few by distinct colours."""
    at_mode = mode_of(run, mode)
    kinds = ("gradient", "weight", "activation", *DISTRIBUTED, "scalar", "loss")
    keys = chosen_tensors(run, tensors, regex, kinds=kinds, mode=at_mode)
    if not keys:
        return nothing_yet(run, "such tensors", regex)
    is_chosen = tensors or regex is not None
    # of a deep model the first layers alone would tell little
    drawn = keys[:_MOST] if is_chosen else [keys[i] for i in evenly(len(keys), _DEFAULT)]
    column = COLUMNS[statistic]
    table = run.stats(
        [key.name for key in drawn], [column.source], mode=at_mode, steps=step_bounds(steps), rank=rank
    )
    if not len(table):
        return empty("No values in this range.", "Choose other steps or another mode.")
    is_log = log_y if log_y is not None else column.sign == "positive"
    traces = _lines(drawn, table, column, max(4, n_out), is_log=is_log)
    figure = new_figure(
        traces,
        xaxis=step_axis(np.asarray(table["step"])),
        yaxis=_y_axis(column, [trace["y"] for trace in traces], is_log=is_log),
        legend=SIDE_LEGEND,
        showlegend=True,
        margin={"t": 24},
    )
    shown = f"{count(len(drawn), 'tensor')}{of_more(len(drawn), len(keys))}"
    return describe(figure, f"{column.label} of {shown}, in mode {at_mode}.", step=step)


def _y_axis(column: Column, values: list[NDArray[np.float64]], *, is_log: bool) -> dict[str, Any]:
    """Title and ticks; over several decades only powers of ten are labelled."""
    axis: dict[str, Any] = {"title": {"text": column.label}, "type": "log" if is_log else "linear"}
    if column.sign == "share":
        return axis | {"tickformat": "~%"}
    shown = np.concatenate(values)
    shown = shown[np.isfinite(shown) & (shown > 0)]
    if is_log and len(shown) and shown.max() / shown.min() > 100:
        axis["dtick"] = max(1, round(float(np.log10(shown.max() / shown.min())) / 8))
    return axis | {"exponentformat": "power"}


def _lines(
    keys: list[TensorKey], table: DataFrame, column: Column, n_out: int, *, is_log: bool
) -> list[dict[str, Any]]:
    names = np.asarray(table["tensor"].astype(str))
    steps = np.asarray(table["step"], dtype=np.int64)
    values = np.asarray(table[column.source], dtype=np.float64)
    labels = short_unique([key.name for key in keys], 30)
    colours = ramp(SEQUENTIAL, len(keys)) if len(keys) > len(SERIES) else [pick(i) for i in range(len(keys))]
    traces: list[dict[str, Any]] = []
    for key, label, colour in zip(keys, labels, colours, strict=True):
        rows = np.flatnonzero(names == key.name)
        rows = rows[np.argsort(steps[rows], kind="stable")]
        if not len(rows):
            continue
        x, y = steps[rows], values[rows]
        kept = min_max(y, n_out, x=x.astype(np.float64))
        shown = np.where(np.isfinite(y[kept]), y[kept], np.nan)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines" if len(kept) > 1 else "markers",
                "x": x[kept],
                "y": shown,
                "name": label,
                "line": {"color": colour, "width": 1.8},
                "marker": {"color": colour, "size": 7},
                "hovertemplate": f"{full(key.name)}<br>step %{{x:,d}}: <b>"
                f"%{{y:{'.2%' if column.sign == 'share' else '.4g'}}}</b><extra></extra>",
            }
        )
        traces += not_finite_marks(x[kept], y[kept], key.name, positive=is_log)
    return traces
