"""One scalar of several runs: their curves over each other, or what they came to over their settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tdbg_lab.records import Mode
from tdbg_lab.views.common import points
from tdbg_lab.views.far_off import far_off, frame_of
from tdbg_lab.views.labels import count, cut, number
from tdbg_lab.views.param import MOST_RUNS, Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.run_curves import SCALAR_KINDS, curves_of, ends_of, usual_scalar
from tdbg_lab.views.run_lines import plot_lines
from tdbg_lab.views.run_names import run_names
from tdbg_lab.views.run_settings import differing_settings, run_differences
from tdbg_lab.views.setting_plots import MOST_PLOTS, plot_settings
from tdbg_lab.views.style import describe, empty

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plotly import graph_objects as go

    from tdbg_lab.run import Run
    from tdbg_lab.views.run_curves import RunCurve, RunEnd

__all__ = ["runs_view"]

_MOST_CHARS = 40
"""Of a name in the caption."""


@view(
    "runs",
    title="Several runs",
    description="One loss or metric of several runs, over steps, time or the settings in which they differ.",
    params=(
        Param(
            "others",
            "Other runs",
            "runs",
            help=f"Each is a line beside that of this run; at most {MOST_RUNS}.",
        ),
        Param(
            "tensor",
            "Scalar",
            "tensor",
            tensor_kinds=tuple(kind.value for kind in SCALAR_KINDS),
            help="Default: the first loss that most of the runs have.",
        ),
        Param(
            "along",
            "Along",
            "choice",
            "steps",
            choices=("steps", "time", "settings"),
            choice_labels=("Steps", "Time", "Settings"),
            help="Time is counted from where each run began; settings are those in which the runs differ.",
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
    """A line for each run and mode, this run's above the others; thin ones where colours repeat.

    Along settings a plot for each setting in which the runs differ, with the last value of each run.
    """
    runs = [run, *(each for each in others or () if each.info.id != run.info.id)]
    if len(runs) == 1:
        return empty(
            "Choose the runs to draw beside this one.",
            "One scalar of all of them is then drawn, such as the losses of a search over learning rates.",
        )
    name = tensor or usual_scalar(runs)
    if name is None:
        return empty("None of the runs has a loss or a metric.", "Give attach() the loss, or log numbers.")
    modes = tuple(Mode) if mode is None else (Mode(mode),)
    curves = curves_of(runs, name, modes, over_time=along == "time")
    if not curves:
        return empty(f"No run has a value of {cut(name, _MOST_CHARS)} yet.", "Choose another scalar or mode.")
    names, more = run_names(runs), ""
    if along == "settings":
        settings = differing_settings(runs)
        if not settings:
            return empty(
                "These runs do not differ in a setting.",
                "Settings are what attach(hyperparameters={...}) was given, and options on the command line.",
            )
        ends = ends_of(curves, smoothing / 100)
        figure = plot_settings(settings, ends, names, tensor=name, log_y=log_y, limit=far_off(curves))
        if len(settings) > MOST_PLOTS:
            more = f" The first {MOST_PLOTS} of {len(settings)} settings are drawn."
    else:
        ends = ends_of(curves)
        frame = frame_of(curves, log_y=log_y)
        if frame is not None:
            leave = f"{count(frame.left, 'run')} {'leaves' if frame.left == 1 else 'leave'} the picture"
            more = f" {leave}, as the others would be one line; a double click shows all."
        told = [f"{own} [{of}]" if of else own for own, of in zip(names, run_differences(runs), strict=True)]
        figure = plot_lines(
            curves,
            told,
            tensor=name,
            over_time=along == "time",
            smoothing=smoothing / 100,
            n_out=n_out,
            log_y=log_y,
            frame=frame,
        )
    return describe(figure, f"{_caption(curves, ends, names, name)}{more}", x_axes=(), tensor=name)


def _caption(curves: Sequence[RunCurve], ends: Mapping[int, RunEnd], names: Sequence[str], name: str) -> str:
    """Between which values the runs stand, how many have none, and how many diverged."""
    having = len({curve.run for curve in curves})
    finite = {at: end.value for at, end in ends.items() if math.isfinite(end.last)}
    text = f"{cut(name, _MOST_CHARS)} of {having} of {len(names)} runs"
    if finite:
        low, high = min(finite, key=finite.__getitem__), max(finite, key=finite.__getitem__)
        text += f"; at the end {number(finite[low])} in {cut(names[low], _MOST_CHARS)}"
        if high != low:
            text += f" to {number(finite[high])} in {cut(names[high], _MOST_CHARS)}"
    if len(finite) < having:
        text += f"; {count(having - len(finite), 'run')} diverged"
    return f"{text}."
