"""Curves of several runs over each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import min_max
from tdbg_lab.views.common import MODE_DASH, MODE_WORD
from tdbg_lab.views.labels import full, short
from tdbg_lab.views.palette import SERIES, pick
from tdbg_lab.views.scalars import smooth
from tdbg_lab.views.style import new_figure, not_finite_marks, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plotly import graph_objects as go

    from tdbg_lab.views.far_off import Frame
    from tdbg_lab.views.run_curves import RunCurve

__all__ = ["plot_lines"]


def plot_lines(
    curves: Sequence[RunCurve],
    told: Sequence[str],
    *,
    tensor: str,
    over_time: bool,
    smoothing: float,
    n_out: int,
    log_y: bool,
    frame: Frame | None,
) -> go.Figure:
    """A line for each curve, those of the first run above the others; thin ones where colours repeat.

    Parameters
    ----------
    told
        What is said of each run.
    tensor
        The scalar.
    over_time
        Whether the curves stand over seconds instead of steps.
    frame
        What is shown at first, if it is not all.
    """
    unit = ""
    if over_time:
        unit, seconds = _unit(curves)
        curves = [replace(curve, x=curve.x / seconds) for curve in curves]
    traces = [
        trace
        for curve in curves
        for trace in _traces(
            curve, told[curve.run], unit, smoothing=smoothing, n_out=n_out, log_y=log_y, frame=frame
        )
    ]
    room = {} if frame is None else {"range": frame.axis(log_y=log_y)}
    ends = [trace["x"][at] for trace in traces for at in (0, -1)]
    return new_figure(
        traces,
        xaxis={"title": {"text": f"Time since the run began ({unit})"}} if unit else step_axis(ends),
        yaxis={"title": {"text": short(tensor)}, "type": "log" if log_y else "linear", **room},
        hovermode="closest" if unit else "x unified",
        showlegend=True,
    )


def _unit(curves: Sequence[RunCurve]) -> tuple[str, float]:
    """In what the longest of the runs is told, and its length in seconds."""
    longest = max(float(curve.x[-1]) for curve in curves)
    units = (("h", 3600.0), ("min", 60.0))
    return next((unit for unit in units if longest > 3 * unit[1]), ("s", 1.0))


def _traces(
    curve: RunCurve,
    told: str,
    unit: str,
    *,
    smoothing: float,
    n_out: int,
    log_y: bool,
    frame: Frame | None,
) -> list[dict[str, Any]]:
    """The line of a curve, and marks where it is not finite, within the frame."""
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
    levels = curve.y[kept] if frame is None else frame.hold(curve.y[kept])
    marks = not_finite_marks(curve.x[kept], levels, told, positive=log_y, where=when)
    return [line, *marks]
