"""A figure in a notebook, made for a kernel that is busy and a notebook that is saved."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import plotly
import traitlets

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["FigureWidget"]

_ASKED = {"tdbg": "plotly"}
"""What a browser says, and is answered with, when no server gives it Plotly's code."""


def _code() -> str:
    text = resources.files("tdbg_lab.notebook").joinpath("figure.js").read_text(encoding="utf-8")
    return text.replace("__VERSION__", plotly.__version__)


class FigureWidget(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
    """What a browser shows is what the synchronised state says, whenever it looks.

    Plotly's own widget sends changes as messages beside its state: a browser that still loads, or whose cell
    is scrolled away or hidden, misses them and shows old pictures for good. It also carries Plotly's code,
    5 MB, in every widget and in every notebook that is saved with its widgets.

    Arrays travel in Plotly's base64 form, which costs a twentieth of nested lists.

    Attributes
    ----------
    figure
        What is shown, in plain JSON types: ``{"data": [...], "layout": {...}}``.
    """

    _esm = _code()
    figure: traitlets.Dict[str, Any] = traitlets.Dict({"data": [], "layout": {}}).tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self.on_msg(self._answer)

    def draw(self, figure: go.Figure) -> None:
        """Show `figure`; nothing is sent when it is what is shown already."""
        self.figure = figure.to_plotly_json()

    def _answer(self, _widget: object, content: object, _buffers: object) -> None:
        if content == _ASKED:
            code = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
            self.send(_ASKED, buffers=[code.read_bytes()])
