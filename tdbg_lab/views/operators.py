"""Operators, kernels or Python functions of a captured profile, as a table."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tdbg_lab.store.jsonable import float_in
from tdbg_lab.views.labels import count, cut, duration, number, percent, safe, short
from tdbg_lab.views.palette import GRID
from tdbg_lab.views.param import Param
from tdbg_lab.views.profiles import PROFILE, RANK_OF_PROFILE, Chosen, choose
from tdbg_lab.views.recent import RANGE, Range
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["operators_view"]

_KEYS = {"operators": "operators", "kernels": "kernels", "functions": "functions"}
_NO_ROWS = {
    "operators": "It was recorded without operators, or the training is not PyTorch.",
    "kernels": "No kernel of a GPU ran in it.",
    "functions": "Ask for python='calls' (cProfile); samples are in the flame graph.",
}
_SORTS = {
    "self": lambda row: -_number(row, "self_us"),
    "total": lambda row: -_number(row, "total_us"),
    "gpu": lambda row: -_number(row, "gpu_us"),
    "calls": lambda row: -_number(row, "calls"),
    "memory": lambda row: -_number(row, "bytes"),
}
_LINE_CHARS = 26
_PARTS = re.compile(r".*?(?:::|[ ,/_<]|$)")
"""Parts of a name that may stand in lines of their own."""


@view(
    "operators",
    title="Operators",
    description="Operators, kernels or Python functions of a profile on demand, by the time they took.",
    params=(
        Param(
            "show",
            "Show",
            "choice",
            "operators",
            choices=("operators", "kernels", "functions"),
            choice_labels=("Operators", "GPU kernels", "Python functions"),
        ),
        Param(
            "sort",
            "Sort by",
            "choice",
            choices=("self", "total", "gpu", "calls", "memory"),
            choice_labels=("Own time", "Total time", "GPU time", "Calls", "Memory"),
            help="Default: GPU time where there is some, else own time.",
        ),
        PROFILE,
        RANGE,
        RANK_OF_PROFILE,
        Param("rows", "Rows", "int", 40, minimum=1, maximum=400),
    ),
)
def operators_view(
    run: Run,
    *,
    show: str = "operators",
    sort: str | None = None,
    profile: int | None = None,
    range: Range = None,  # noqa: A002 - its name on the wire
    rank: int | None = None,
    rows: int = 40,
) -> go.Figure:
    """A table; times are of all steps of the profile together."""
    chosen = choose(run, profile, rank, range)
    if not isinstance(chosen, Chosen):
        return chosen
    found = _rows(chosen.digest.get(_KEYS[show]))
    if not found:
        return empty(f"The profile of {chosen.title} has no {show}.", f"{_NO_ROWS[show]} {chosen.missing}")
    on_gpu = any(_number(row, "gpu_us") for row in found)
    order: Callable[[dict[str, Any]], float] = _SORTS[sort or ("gpu" if on_gpu else "self")]
    if show == "kernels" and sort in {None, "self", "gpu", "memory"}:
        order = _SORTS["total"]
    shown = sorted(found, key=order)[:rows]
    figure = new_figure([_table(shown, found, show, on_gpu=on_gpu)], margin={"l": 8, "r": 8, "t": 8, "b": 8})
    return describe(figure, _caption(found, shown, show, chosen), x_axes=())


def _table(
    shown: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], show: str, *, on_gpu: bool
) -> dict[str, Any]:
    own_key = "total_us" if show == "kernels" else "self_us"
    whole = sum(_number(row, own_key) for row in found) or 1.0
    columns: list[tuple[str, list[str], float, str]] = [
        ("Name", [_lines(str(row.get("name", ""))) for row in shown], 4.2, "left"),
        ("Calls", [f"{int(_number(row, 'calls')):,}" for row in shown], 1.1, "right"),
        ("Own", [percent(_number(row, own_key) / whole) for row in shown], 1.1, "right"),
    ]
    if show == "kernels":
        columns.append(("Device", [safe(str(row.get("device", ""))) for row in shown], 1.0, "left"))
    else:
        columns.append(("Own ms", [_ms(row, "self_us") for row in shown], 1.1, "right"))
    columns.append(("Total ms", [_ms(row, "total_us") for row in shown], 1.1, "right"))
    if show == "operators":
        if on_gpu:
            columns.append(("GPU ms", [_ms(row, "gpu_us") for row in shown], 1.1, "right"))
        columns.append(("Memory", [_bytes(_number(row, "bytes")) for row in shown], 1.6, "right"))
        columns.append(
            ("Input shapes", [short(str(row.get("shapes", "")), 48) for row in shown], 2.8, "left")
        )
    line = {"color": GRID, "width": 1}
    return {
        "type": "table",
        "columnwidth": [width for _, _, width, _ in columns],
        "header": {
            "values": [f"<b>{name}</b>" for name, _, _, _ in columns],
            "align": [align for *_, align in columns],
            "fill": {"color": "rgba(128,134,145,0.12)"},
            "line": line,
            "font": {"size": 12},
        },
        "cells": {
            "values": [values for _, values, _, _ in columns],
            "align": [align for *_, align in columns],
            "fill": {"color": "rgba(0,0,0,0)"},
            "line": line,
            "font": {"size": 12},
            "height": 24,
        },
    }


def _lines(name: str) -> str:
    """A name in lines: a table breaks texts at spaces only, and a long name would run out of its cell."""
    lines = [""]
    for part in _PARTS.findall(cut(name, 70)):
        if lines[-1] and len(lines[-1]) + len(part) > _LINE_CHARS:
            lines.append("")
        lines[-1] += part
    return "<br>".join(map(safe, lines))


def _caption(
    found: Sequence[dict[str, Any]], shown: Sequence[dict[str, Any]], show: str, chosen: Chosen
) -> str:
    key = "total_us" if show == "kernels" else "self_us"
    whole = sum(_number(row, key) for row in found) or 1.0
    first = max(found, key=lambda row: _number(row, key))
    name = str(first.get("name", ""))[:80]
    text = (
        f"{len(shown)} of {count(len(found), show[:-1])} in {chosen.title}: {name} takes "
        f"{percent(_number(first, key) / whole)} of {duration(whole / 1e6)}."
    )
    return " ".join(filter(None, [text, chosen.missing]))


def _rows(value: Any) -> list[dict[str, Any]]:
    """Rows of a digest: a file that anybody could have written."""
    rows = value if isinstance(value, list) else []
    return [row for row in rows[:2000] if isinstance(row, dict)]


def _number(row: dict[str, Any], key: str) -> float:
    value = float_in(row.get(key))
    return value if value is not None and math.isfinite(value) else 0.0


def _ms(row: dict[str, Any], key: str) -> str:
    return number(_number(row, key) / 1e3, 3)


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.3g} {unit}" if value else ""
        value /= 1024
    return ""
