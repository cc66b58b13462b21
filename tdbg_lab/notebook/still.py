"""The picture that stays in a saved notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plotly.io import to_html

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FRAME_CSS", "PLOTLY_MIME", "still"]

_CONFIG = {"displaylogo": False, "responsive": True, "showSendToCloud": False}  # nothing leaves the machine
_EDGE_PX, _TITLE_PX = 8, 32
"""What is kept free above a legend, without a title and with one."""

PLOTLY_MIME = "application/vnd.plotly.v1+json"

FRAME_CSS = (
    ".jp-OutputArea-child:has(.tdbg-frame)"
    " + .jp-OutputArea-child:not(:has(.tdbg-live)) {display: none}\n"
    ".jp-OutputArea-child:has(.tdbg-live) + .jp-OutputArea-child {display: none}"
)
"""A live view is three outputs: a frame (this style), the widget, the still. While the widget lives the
still is hidden; in a notebook opened without the kernel, the place of the dead widget is."""


def still(shown: Mapping[str, Any], *, text: str = "") -> dict[str, Any]:
    """A figure as a bundle of MIME types.

    JupyterLab draws the Plotly JSON without a kernel; exported pages use the HTML, which fetches plotly.js
    from its public address; everything else shows `text`.

    Parameters
    ----------
    shown
        The figure in plain JSON types: ``{"data": [...], "layout": {...}}``.
    text
        What stands for it where there are no pictures.
    """
    drawn = {"data": shown["data"], "layout": _legend_at_the_top(shown["layout"])}
    figure = drawn | {"config": _CONFIG}
    page = to_html(drawn, include_plotlyjs="cdn", full_html=False, config=_CONFIG, validate=False)
    return {PLOTLY_MIME: figure, "text/html": page, "text/plain": text or "A picture of tdbg-lab"}


def _legend_at_the_top(layout: Mapping[str, Any]) -> dict[str, Any]:
    """A legend that stands on the picture hangs from the top instead.

    JupyterLab draws the pictures of a notebook before they have a place. There a legend has no height: one
    that is put onto the picture by its lower edge then lies over the lines.
    """
    legend, height = layout.get("legend") or {}, layout.get("height")
    if legend.get("yanchor") != "bottom" or not height:
        return dict(layout)
    above = _TITLE_PX if (layout.get("title") or {}).get("text") else _EDGE_PX
    hung = {"yref": "container", "yanchor": "top", "y": 1 - above / height}
    return {**layout, "legend": {**legend, **hung}}
