"""What charts of a notebook share: a figure that shows itself, and shows itself again when it changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.views.labels import safe
from tdbg_lab.views.palette import pick
from tdbg_lab.views.style import empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from plotly import graph_objects as go

__all__ = ["NotebookChart", "heading", "histogram", "tiles"]

_TILE_PX = 230


class NotebookChart:
    """A chart; what a subclass draws stands in `figure`."""

    def __init__(self) -> None:
        self.figure: go.Figure = empty("Nothing was drawn yet.", "Call plot().")
        self._place: Any = None

    def _show(self, figure: go.Figure) -> None:
        """Show a figure in the notebook, in the place of the one before; elsewhere only keep it."""
        self.figure = figure
        ipython = sys.modules.get("IPython")
        if ipython is None or ipython.get_ipython() is None:
            return
        if self._place is None:
            from IPython.display import display

            self._place = display(figure, display_id=True)
        else:
            self._place.update(figure)


def histogram(counts: NDArray[np.int64], edges: NDArray[np.float64], hover: str) -> dict[str, Any]:
    """Bars for the counts, shape ``(B,)``, between edges, shape ``(B + 1,)``."""
    return {
        "type": "bar",
        "x": (edges[1:] + edges[:-1]) / 2,
        "width": np.diff(edges),
        "y": counts,
        "marker": {"color": pick(0)},
        "hovertemplate": hover,
    }


def tiles(traces: Mapping[str, Mapping[str, Any]], axis_title: str, *, columns: int = 3) -> go.Figure:
    """Small plots beside and below each other, one for each trace, under its name."""
    if not traces:
        return empty("Nothing fits the selection.", "Choose others, or wait for data.")
    rows = -(-len(traces) // columns)
    across = min(columns, len(traces))
    figure = new_figure()
    figure.update_layout(
        grid={"rows": rows, "columns": across, "pattern": "independent", "xgap": 0.16, "ygap": 0.34},
        height=90 + _TILE_PX * rows,
        showlegend=False,
        annotations=[heading(name, at) for at, name in enumerate(traces, start=1)],
    )
    for at, trace in enumerate(traces.values(), start=1):
        axis = "" if at == 1 else str(at)
        figure.add_trace({**trace, "xaxis": f"x{axis}", "yaxis": f"y{axis}"})
        figure.update_layout(
            {
                f"xaxis{axis}": {"title": {"text": axis_title}, "anchor": f"y{axis}"},
                f"yaxis{axis}": {"anchor": f"x{axis}", "domain": None},
            }
        )
    return figure


def heading(name: str, at: int, *, x: str = "") -> dict[str, Any]:
    """The name of the plot on the `at`-th y axis, above it; `x` is its x axis, if that has another number."""
    axis = "" if at == 1 else str(at)
    return {
        "text": safe(name),
        "xref": f"{x or f'x{axis}'} domain",
        "yref": f"y{axis} domain",
        "x": 0.5,
        "y": 1.02,
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 11},
    }
