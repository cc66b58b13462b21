"""The picture that stays in a saved notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plotly.io import to_html

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FRAME_CSS", "PLOTLY_MIME", "still"]

_CONFIG = {"displaylogo": False, "responsive": True, "showSendToCloud": False}  # nothing leaves the machine
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
    figure = {"data": shown["data"], "layout": shown["layout"], "config": _CONFIG}
    page = to_html(shown, include_plotlyjs="cdn", full_html=False, config=_CONFIG, validate=False)
    return {PLOTLY_MIME: figure, "text/html": page, "text/plain": text or "A picture of tdbg-lab"}
