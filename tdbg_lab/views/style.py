"""The look every view shares: axes, margins, colour bars, empty states, and what hosts read from a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# plotly uses pandas where it finds it in sys.modules, and there it may stand half imported: pyarrow imports
# it when another thread first converts a column. Complete before the first figure, it cannot.
import pandas as pd  # noqa: F401
from plotly import graph_objects as go

from tdbg_lab.records import RunStatus
from tdbg_lab.views.labels import count, cut, full, number, safe
from tdbg_lab.views.palette import BAD, GRID, MUTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.analysis.value_axis import ValueAxis
    from tdbg_lab.run import Run

__all__ = [
    "SIDE_LEGEND",
    "caption_of",
    "colour_bar",
    "describe",
    "draw_cursor",
    "empty",
    "float32",
    "new_figure",
    "not_finite_marks",
    "nothing_yet",
    "small",
    "step_axis",
    "table_of",
    "tensor_of",
    "time_axis",
    "value_axis",
]

_GAP = 0.07
_LINE_CHARS = 46

SIDE_LEGEND = {"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top"}
"""A legend at the right, for many entries."""

_AXIS = {
    "gridcolor": GRID,
    "linecolor": GRID,
    "tickcolor": GRID,
    "zerolinecolor": GRID,
    "zeroline": False,
    "showline": True,
    "ticks": "outside",
    "ticklen": 4,
    "automargin": True,
    "title": {"standoff": 8, "font": {"size": 12}},
    "tickfont": {"size": 11},
}

_TEMPLATE = go.layout.Template(layout={"xaxis": _AXIS, "yaxis": _AXIS})


def new_figure(
    traces: Sequence[Any] = (), *, title: str = "", heights: Sequence[float] = (1.0,), **layout: Any
) -> go.Figure:
    """A figure with one x axis and `heights` plots above each other (the first on top).

    Traces name their plot by ``yaxis="y"``, ``"y2"``, ...; all of them share ``xaxis="x"``, so one cursor
    crosses every plot. Extra arguments go into the layout and win; given here they cost nothing, while each
    `update_layout` afterwards takes as long as all the rest.

    Parameters
    ----------
    title
        What is shown, already `safe`; short.
    heights
        Relative heights.
    """
    base: dict[str, Any] = {
        "template": _TEMPLATE,
        "margin": {"l": 60, "r": 18, "t": 44, "b": 48},
        "title": {
            "text": title,
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 14},
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": 14},
        },
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1, "align": "left"},
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            "font": {"size": 11},
            "itemwidth": 30,
            "tracegroupgap": 0,  # between the lines of a legend: the picture needs the room
            "bgcolor": "rgba(0,0,0,0)",
        },
    }
    base["title"]["pad"]["t"] = 10
    base["xaxis"] = {"anchor": "y" if len(heights) == 1 else f"y{len(heights)}"}
    for index, domain in enumerate(_domains(heights)):
        base["yaxis" + (str(index + 1) if index else "")] = {"domain": domain, "anchor": "x"}
    # plotly would look at every value of every array, which takes longer than drawing: the tests do that
    return go.Figure(data=list(traces), layout=_merged(base, layout), _validate=False)


def describe(
    figure: go.Figure, caption: str, *, step: int | None = None, x_axes: Sequence[str] = ("x",), **more: Any
) -> go.Figure:
    """Write what hosts read into ``layout.meta["tdbg"]`` and give the figure back.

    Parameters
    ----------
    caption
        One sentence, plain text (not HTML): what is seen, with the numbers that matter.
    step
        The step shown.
    x_axes
        Axes that show the shared step or time.
    more
        Further facts, JSON types: ``tensor`` is the name of the one tensor shown.
    """
    figure.layout.meta = {"tdbg": {"caption": caption, "step": step, "x_axes": list(x_axes), **more}}
    return figure


def caption_of(figure: go.Figure) -> str:
    """What `describe` wrote; empty where it wrote nothing."""
    return str(_facts_of(figure).get("caption") or "")


def tensor_of(figure: go.Figure) -> str | None:
    """Name of the one tensor shown, as `describe` wrote it; None where there is none."""
    name = _facts_of(figure).get("tensor")
    return name if isinstance(name, str) else None


def _facts_of(figure: go.Figure) -> Mapping[str, Any]:
    meta = figure.layout.meta
    return ((meta or {}).get("tdbg") or {}) if isinstance(meta, dict) else {}


def empty(message: str, hint: str = "") -> go.Figure:
    """A figure without data that says what is missing and what to do about it.

    Both texts are plain; they are made `safe` here.
    """
    text = f"<b>{safe(message)}</b>" + (f"<br>{_wrapped(hint)}" if hint else "")
    figure = go.Figure(
        layout={
            "template": _TEMPLATE,
            "margin": {"l": 24, "r": 24, "t": 24, "b": 24},
            "xaxis": {"visible": False, "range": [0, 1]},
            "yaxis": {"visible": False, "range": [0, 1]},
            "annotations": [
                {
                    "text": text,
                    "x": 0.5,
                    "y": 0.5,
                    "xref": "paper",
                    "yref": "paper",
                    "showarrow": False,
                    "font": {"size": 13},
                    "align": "center",
                }
            ],
        }
    )
    return describe(figure, f"{message} {hint}".strip(), x_axes=(), empty=True)


def nothing_yet(run: Run, what: str, regex: str | None = None) -> go.Figure:
    """The empty state of a view of tensors: the run has none yet, or none of this sort.

    Parameters
    ----------
    what
        What the view would show, plural: ``"gradients"``.
    regex
        Which of them were asked for, if not all.
    """
    if regex and run.tensors():
        return empty(
            f"No {what} match the name pattern {cut(regex, 40)}.",
            "It is a regular expression, searched in the names: change it, or clear it to see all.",
        )
    if run.tensors():
        return empty(
            f"This run has no {what}.",
            f"Choose something else, or capture {what}: tdbg.attach(model, ..., collections=[...]).",
        )
    if run.status != RunStatus.RUNNING:
        return empty(
            "Nothing was recorded.",
            "The run ended before its first saved step. Check that the training loop ran, and that "
            "tdbg.attach(model, optimizer=..., loss=...) was called before it.",
        )
    return empty(
        "No data yet.",
        "The first saved training step appears here by itself. Nothing comes? Check that the training "
        "loop runs and that tdbg.attach(model, optimizer=..., loss=...) was called before it.",
    )


def step_axis(steps: NDArray[np.int64] | Sequence[int], **more: Any) -> dict[str, Any]:
    """An x axis of steps: whole numbers, with room for a single one."""
    axis: dict[str, Any] = {"title": {"text": "Step"}, "tickformat": ",d", **more}
    if len(steps):
        first, last = int(np.min(steps)), int(np.max(steps))
        if last - first < 5:
            axis.setdefault("dtick", 1)
        if first == last:
            axis.setdefault("range", [first - 0.5, last + 0.5])
    return axis


def time_axis(**more: Any) -> dict[str, Any]:
    """An x axis of seconds: zoomed to a millisecond of a long run its labels have the digits to differ."""
    return {"title": {"text": "Time since start (s)"}, "exponentformat": "none", **more}


def value_axis(axis: ValueAxis, edges: NDArray[np.float64]) -> dict[str, Any]:
    """A plotly axis for positions on `axis`, from the first to the last of `edges`."""
    answer: dict[str, Any] = {
        "title": {"text": "Value"},
        "range": [float(edges[0]), float(edges[-1])],
        "exponentformat": "e",  # else plotly writes 1e-5 as 10μ
    }
    if axis.scale == "signed_log":
        positions, values = axis.ticks()
        answer |= {
            "tickmode": "array",
            "tickvals": positions.tolist(),
            "ticktext": [number(float(value), 3) for value in values],
            "title": {"text": "Value (signed log)"},
        }
    return answer


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    """A thin colour bar whose title stands at its side."""
    return {
        "title": {"text": title, "side": "right", "font": {"size": 11}},
        "thickness": 10,
        "outlinewidth": 0,
        "len": 1.0,
        "xpad": 6,
        "ticks": "outside",
        "ticklen": 3,
        "tickcolor": GRID,
        "tickfont": {"size": 10},
        **more,
    }


def table_of(**facts: Any) -> dict[str, Any]:
    """The ``meta`` of a trace drawn elsewhere than where its numbers stand, for its table in the Lab.

    Parameters
    ----------
    facts
        ``x``, ``y``: the field with the numbers, or a column of it such as ``"customdata.0"``; ``name``: of
        the column in the table; ``header``: of what stands along the x axis; ``skip``: it is the edge or the
        ground of another trace.
    """
    return {"table": facts}


def float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Half the bytes on the wire; what lies beyond float32 goes to its end, NaN and infinities stay."""
    most = float(np.finfo(np.float32).max)
    inside = np.where(np.isinf(values), values, np.clip(values, -most, most))
    return inside.astype(np.float32)


def draw_cursor(figure: go.Figure, step: int) -> go.Figure:
    """Mark `step` in a figure over steps, for hosts without a cursor of their own (notebook, report)."""
    for axis in _facts_of(figure).get("x_axes", ()):
        figure.add_shape(
            type="line",
            xref=axis,
            yref="paper",
            x0=step,
            x1=step,
            y0=0,
            y1=1,
            line={"color": MUTED, "width": 1.5, "dash": "dash"},
        )
    return figure


def small(text: str, **more: Any) -> dict[str, Any]:
    """A small annotation at the top right; `text` is already `safe`."""
    return {
        "text": text,
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": 1,
        "y": 1,
        "xanchor": "right",
        "yanchor": "bottom",
        "font": {"size": 11},
        "align": "right",
        **more,
    }


def not_finite_marks(
    x: NDArray[Any],
    values: NDArray[np.float64],
    name: str,
    *,
    yaxis: str = "y",
    positive: bool = False,
    where: str = "step %{x:,d}",
) -> list[dict[str, Any]]:
    """Markers where `values` is NaN or infinite: on the last finite value, or the largest or smallest one.

    Parameters
    ----------
    positive
        The axis is logarithmic: marks need a place above zero.
    where
        What a mark says of its place, as a template of Plotly.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return []
    usable = np.isfinite(values) & ((values > 0) if positive else True)
    good = np.flatnonzero(usable)
    if not len(good):
        level = np.full(len(bad), 1.0 if positive else 0.0)
    else:
        before = np.searchsorted(good, bad) - 1
        level = values[good[np.maximum(before, 0)]]
        level = np.where(values[bad] == np.inf, values[good].max(), level)
        level = np.where(values[bad] == -np.inf, values[good].min(), level)
    words = [number(float(value)) for value in values[bad]]
    symbols = [
        "x" if word == "NaN" else "triangle-up" if word == "+inf" else "triangle-down" for word in words
    ]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": x[bad],
            "y": level,
            "text": words,
            "yaxis": yaxis,
            "name": f"{full(name)}: {count(len(bad), 'value')} not finite",
            "showlegend": False,
            "marker": {"color": BAD, "size": 9, "symbol": symbols, "line": {"width": 1, "color": BAD}},
            "hovertemplate": f"{full(name)}<br>{where}: <b>%{{text}}</b><extra></extra>",
        }
    ]


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid upon it, dictionaries within merged."""
    answer = dict(base)
    for key, value in over.items():
        old = answer.get(key)
        answer[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return answer


def _domains(heights: Sequence[float]) -> list[list[float]]:
    """Vertical extents of plots above each other, first on top."""
    room = 1.0 - _GAP * (len(heights) - 1)
    total = sum(heights)
    answer, top = [], 1.0
    for height in heights:
        share = room * height / total
        answer.append([max(top - share, 0.0), top])
        top -= share + _GAP
    return answer


def _wrapped(text: str) -> str:
    """Plain text over several lines that fit the narrow panels of a dashboard, safe."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) + 1 > _LINE_CHARS:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    lines.append(line)
    return "<br>".join(safe(each) for each in lines)
