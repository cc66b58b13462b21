"""Colours of inline figures: the kernel does not know the theme of the page, so they suit both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["themed"]

_INK = "#7d7d7d"
"""Contrast of about 4:1 on white and on JupyterLab's dark grey."""
_CLEAR = "rgba(0,0,0,0)"
_HEIGHT_PX = 380


def themed(figure: go.Figure) -> go.Figure:
    """`figure` on a clear ground, with grey text and a height; changed in place and returned.

    Views leave these colours to their host.
    """
    host: dict[str, Any] = {"paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR, "font": {"color": _INK}}
    if figure.layout.height is None:
        host["height"] = _HEIGHT_PX
    figure.update_layout(**host)
    return figure
