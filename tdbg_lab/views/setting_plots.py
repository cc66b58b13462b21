"""What several runs came to, over each of the settings in which they differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.views.labels import full, number, short
from tdbg_lab.views.palette import BAD, pick
from tdbg_lab.views.run_settings import brief
from tdbg_lab.views.style import new_figure, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plotly import graph_objects as go

    from tdbg_lab.views.run_curves import RunEnd
    from tdbg_lab.views.run_settings import Setting

__all__ = ["MOST_PLOTS", "plot_settings"]

MOST_PLOTS = 6
"""More are too narrow to be read."""
_COLUMNS = 3
_GAP = 0.05
_ROW_GAP = 0.16
"""Room for the name and the numbers of an axis between two rows of plots, share of the height."""
_LOG_RATIO = 20
"""Numbers above zero that are further apart than this stand on a logarithmic axis."""


class _Mark(NamedTuple):
    """What is seen of a run."""

    name: str
    """Safe, as `told`."""
    y: float
    told: str
    """The value in words."""
    diverged: bool


def plot_settings(
    settings: Mapping[str, Sequence[Setting | None]],
    ends: Mapping[int, RunEnd],
    names: Sequence[str],
    *,
    tensor: str,
    log_y: bool,
    limit: float,
) -> go.Figure:
    """A plot for each setting, at most `MOST_PLOTS`: a point for each run that has it and came to a value.

    Parameters
    ----------
    settings
        The settings in which the runs differ, each with its value in every run; None where a run has none.
    ends
        What runs came to, by their place.
    names
        Of all runs.
    tensor
        The scalar.
    limit
        The distance from zero above which a run counts as diverged, though its values are finite.
    """
    shown = list(settings.items())[:MOST_PLOTS]
    columns = min(len(shown), _COLUMNS)
    rows = math.ceil(len(shown) / columns)
    marks = _marks(ends, names, limit)
    traces = [_table_column(marks, tensor)]
    axes: dict[str, Any] = {}
    for index, (key, values) in enumerate(shown):
        number_of = str(index + 1) if index else ""
        row, column = divmod(index, columns)
        known = {at: value for at in marks if (value := values[at]) is not None}
        axis = _axis(list(known.values()))
        placed = [_category(value) if axis["type"] == "category" else value for value in known.values()]
        place = {
            "x": placed,
            "xaxis": f"x{number_of}",
            "yaxis": f"y{number_of}",
            "customdata": [full(value) if isinstance(value, str) else value for value in known.values()],
        }
        traces.append(_points(key, {at: marks[at] for at in known}) | place)
        axes[f"xaxis{number_of}"] = {
            "title": {"text": short(key, 24)},
            "domain": _part(column, columns, _GAP),
            "anchor": f"y{number_of}",
            "exponentformat": "e",  # else plotly writes 1e-5 as 10μ
            **axis,
        }
        axes[f"yaxis{number_of}"] = {
            "title": {"text": "" if column else short(tensor)},
            "domain": _part(rows - 1 - row, rows, _ROW_GAP),
            "anchor": f"x{number_of}",
            "type": "log" if log_y else "linear",
            "showticklabels": not column,
            **({"matches": "y"} if index else {}),
        }
    return new_figure(traces, **axes)


def _marks(ends: Mapping[int, RunEnd], names: Sequence[str], limit: float) -> dict[int, _Mark]:
    """A mark for each run.

    One that has diverged, or is about to, stands as high as the highest of the others: its last finite value
    may be so huge that all others would lie on one line.
    """
    diverged = {at for at, end in ends.items() if not math.isfinite(end.last) or abs(end.value) > limit}
    top = max((end.value for at, end in ends.items() if at not in diverged), default=None)
    marks = {}
    for at, (value, last) in ends.items():
        if at in diverged:
            y = value if top is None else top
            told = number(value) if math.isfinite(last) else f"{number(last)}, {number(value)} before"
        else:
            y, told = value, number(value)
        marks[at] = _Mark(full(names[at]), y, told, diverged=at in diverged)
    return marks


def _points(key: str, marks: Mapping[int, _Mark]) -> dict[str, Any]:
    """What some runs came to; the current one is larger."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": full(key),
        "y": [mark.y for mark in marks.values()],
        "text": [mark.name for mark in marks.values()],
        "hovertext": [mark.told for mark in marks.values()],
        "marker": {
            "color": [BAD if mark.diverged else pick(at) for at, mark in marks.items()],
            "symbol": ["x" if mark.diverged else "circle" for mark in marks.values()],
            "size": [9 if at else 12 for at in marks],
        },
        "showlegend": False,
        "hovertemplate": f"%{{text}}<br>{full(key)} %{{customdata}}: <b>%{{hovertext}}</b><extra></extra>",
        "meta": table_of(header="Run", x="text", y="customdata"),
    }


def _table_column(marks: Mapping[int, _Mark], tensor: str) -> dict[str, Any]:
    """What the runs came to, for the table in the Lab; not drawn."""
    return {
        "type": "scatter",
        "visible": False,
        "name": full(tensor),
        "x": [mark.name for mark in marks.values()],
        "y": [mark.told for mark in marks.values()],
        "meta": table_of(header="Run"),
    }


def _axis(values: Sequence[Setting]) -> dict[str, Any]:
    """Numbers on an axis of numbers, all else side by side."""
    numbers = [value for value in values if isinstance(value, float)]
    if not numbers or len(numbers) < len(values):
        order = sorted(set(values), key=lambda value: (isinstance(value, str), value))
        return {"type": "category", "categoryarray": list(map(_category, order))}
    low, high = min(numbers), max(numbers)
    if low > 0 and high / low > _LOG_RATIO:
        return {"type": "log", "dtick": 1 if high / low > 1000 else "D2"}
    return {"type": "linear"}


def _category(value: Setting) -> str:
    return full(brief(value))


def _part(index: int, parts: int, gap: float) -> list[float]:
    """Where the part `index` of an axis of the figure begins and ends."""
    width = (1 - gap * (parts - 1)) / parts
    begin = index * (width + gap)
    return [begin, min(begin + width, 1.0)]
