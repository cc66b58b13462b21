"""Plotly's figure widget, made for a kernel that is busy and a notebook that is saved."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly
import plotly.graph_objects as go

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FigureWidget"]

_ASKED = {"tdbg": "widget-code"}
"""What a browser says, and is answered with, when no server gives it Plotly's widget code."""


def _loader() -> str:
    text = resources.files("tdbg_lab.notebook").joinpath("loader.js").read_text(encoding="utf-8")
    return text.replace("__VERSION__", plotly.__version__)


class FigureWidget(go.FigureWidget):  # type: ignore[misc, unused-ignore]
    """A figure widget without a copy of Plotly, announced to the browser when it is complete.

    Plotly's own carries its code, 5 MB, as part of its state: sent with every widget, and written into every
    notebook that is saved with its widgets. This one carries a few lines that fetch the code.

    Plotly's own announces itself empty and sends its figure afterwards; a browser that draws in between
    shows empty axes for good.
    """

    _esm = _loader()
    _is_complete = False

    def __init__(self, shown: Mapping[str, Any]) -> None:
        super().__init__(shown)
        self.set_trait("_config", {"showSendToCloud": False})  # nothing leaves the user's machines
        self._is_complete = True
        self.on_msg(self._answer)
        self.open()

    def open(self) -> None:
        """Announce the widget; called by ipywidgets too early, and by us."""
        if self._is_complete:
            super().open()

    def _answer(self, _widget: object, content: object, _buffers: object) -> None:
        if content == _ASKED:
            code = Path(plotly.__file__).parent / "package_data" / "widgetbundle.js"
            self.send(_ASKED, buffers=[code.read_bytes()])
