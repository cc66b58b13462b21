"""Flame graph of a captured profile: what called what, and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.store.jsonable import float_in
from tdbg_lab.views.labels import count, duration, percent, safe, short
from tdbg_lab.views.palette import MUTED, SERIES
from tdbg_lab.views.param import Param
from tdbg_lab.views.profiles import PROFILE, RANK_OF_PROFILE, Chosen, choose
from tdbg_lab.views.recent import RANGE, Range
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["flame_view"]

_NO_TREE = {
    "cpu": "It was recorded without operators, or the training is not PyTorch.",
    "gpu": "No kernel of a GPU ran in it.",
    "python": "Ask for python='sampling', and install pyinstrument.",
}
_MOST_NODES = 4000
_LEAST_SHARE = 0.001
_PYTHON, _OPERATOR, _BUILTIN, _MODULE, _OWN = SERIES[0], SERIES[1], SERIES[4], SERIES[2], MUTED


@view(
    "flame",
    title="Flame graph",
    description="Calls of a profile on demand by the time they took: operators, Python, GPU kernels.",
    params=(
        Param(
            "tree",
            "Show",
            "choice",
            choices=("cpu", "gpu", "python"),
            choice_labels=("Operators and Python", "GPU kernels", "Python samples"),
            help="Default: the first one that was recorded.",
        ),
        PROFILE,
        RANGE,
        RANK_OF_PROFILE,
    ),
)
def flame_view(
    run: Run,
    *,
    tree: str | None = None,
    profile: int | None = None,
    range: Range = None,  # noqa: A002 - its name on the wire
    rank: int | None = None,
) -> go.Figure:
    """Callers above what they call; the width is time, a click zooms in."""
    chosen = choose(run, profile, rank, range)
    if not isinstance(chosen, Chosen):
        return chosen
    trees = chosen.digest.get("trees")
    trees = trees if isinstance(trees, dict) else {}
    which = tree or next((name for name in ("cpu", "python", "gpu") if name in trees), "cpu")
    nodes = _nodes(trees.get(which))
    if len(nodes) < 2:
        return empty(f"The profile of {chosen.title} has no such calls.", chosen.missing or _NO_TREE[which])
    whole = nodes[0][2] or 1.0
    shown = _reached([one for one in nodes if one[2] >= whole * _LEAST_SHARE])
    trace = {
        "type": "icicle",
        "ids": [str(one[0]) for one in shown],
        "labels": [short(one[4], 60) for one in shown],
        "parents": ["" if one[1] < 0 else str(one[1]) for one in shown],
        "values": [one[2] / 1e3 for one in shown],
        "customdata": [[safe(one[4]), one[3] / 1e3, percent(one[2] / whole)] for one in shown],
        "branchvalues": "total",
        "marker": {"colors": [_colour(one[4]) for one in shown], "line": {"width": 0.5}},
        "tiling": {"orientation": "v", "pad": 0},
        "textposition": "middle left",
        "sort": False,
        "maxdepth": 40,
        "hovertemplate": "%{customdata[0]}<br><b>%{value:.4~g} ms</b> (%{customdata[2]}), "
        "%{customdata[1]:.4~g} ms in itself<extra></extra>",
    }
    figure = new_figure([trace], margin={"l": 8, "r": 8, "t": 8, "b": 8})
    figure.update_layout(uniformtext={"minsize": 10, "mode": "hide"})  # else it shrinks until it fits
    return describe(figure, _caption(nodes, which, chosen), x_axes=())


_Node = tuple[int, int, float, float, str]
"""Number, number of the parent (-1: none), total and own time in us, name."""


def _nodes(tree: Any) -> list[_Node]:
    """Nodes of a digest, checked: it is a file that anybody could have written."""
    if not isinstance(tree, dict):
        return []
    columns = [tree.get(name) for name in ("parent", "total", "own", "name")]
    if not all(isinstance(column, list) for column in columns):
        return []
    answer: list[_Node] = []
    for index, (parent, total, own, name) in enumerate(zip(*columns, strict=False)):
        whole, alone = float_in(total), float_in(own)
        if index >= _MOST_NODES or whole is None or alone is None or not isinstance(parent, int):
            break
        if parent >= index or (parent < 0) != (index == 0):
            continue
        answer.append((index, parent, whole, alone, str(name)[:200]))
    return answer


def _reached(nodes: list[_Node]) -> list[_Node]:
    """Nodes whose callers are all there; a sum of children that rounding made too large is no matter."""
    known: dict[int, _Node] = {}
    left: dict[int, float] = {}
    for one in nodes:
        number_, parent, total, own, name = one
        if parent >= 0 and parent not in known:
            continue
        if parent >= 0:
            total = min(total, left[parent])
            left[parent] -= total
        known[number_] = (number_, parent, total, own, name)
        left[number_] = total
    return list(known.values())


def _colour(name: str) -> str:
    if name in {"all", "tdbg-lab"} or name.startswith(("thread ", "gpu")):
        return _OWN
    if name.startswith("<"):
        return _BUILTIN
    if name.startswith("nn.Module: "):
        return _MODULE
    return _PYTHON if "): " in name else _OPERATOR


def _caption(nodes: list[_Node], which: str, chosen: Chosen) -> str:
    hot = max(nodes[1:], key=lambda one: one[3])
    what = {"cpu": "Operators and Python calls", "gpu": "GPU kernels", "python": "Python samples"}[which]
    text = (
        f"{what} of {chosen.title}: {duration(nodes[0][2] / 1e6)} in {count(len(nodes) - 1, 'call')}; "
        f"{hot[4][:80]} itself takes {percent(hot[3] / (nodes[0][2] or 1.0))}."
    )
    return " ".join(filter(None, [text, chosen.missing]))
