"""Bring a figure on the screen up to date with a figure just made."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import ipywidgets

from tdbg_lab.notebook.figure_widget import FigureWidget

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

__all__ = ["Screen"]

_KEPT = {"uid", "type"}
_DRAWN = "_js2py_traceDeltas"
"""What a browser sends after each drawing. It means to send the same of the layout, under a wrong name."""


class Screen:
    """A place where figures are drawn, and what it shows as plain JSON types.

    Arrays travel in Plotly's base64 form, which costs a twentieth of the nested lists that a FigureWidget
    makes of arrays with two dimensions.

    Plotly sends changes as messages and leaves the synchronised state as it was at the beginning. But a
    browser draws from that state whenever it makes a view: late while it loads, again when the cell was
    scrolled away or the page was reloaded. So each drawing brings the state up to date as well.

    A browser that is still loading a widget misses the changes sent meanwhile, and a missed new trace would
    spoil all that follows. So traces are never added: a figure of another structure gets a new widget, which
    begins complete, and a widget that reports its first drawing gets everything once more.

    Attributes
    ----------
    box
        The widget to display.
    shown
        What it shows: ``{"data": [...], "layout": {...}}``.
    """

    def __init__(self) -> None:
        self.box = ipywidgets.VBox()
        self.widget: FigureWidget | None = None
        """None until there is something to draw."""
        self.shown: dict[str, Any] = {"data": [], "layout": {}}
        self._is_seen = False
        self._lock = threading.RLock()  # the browser reports in another thread than the one that draws

    def draw(self, figure: go.Figure) -> None:
        """Show `figure`, sending only what differs.

        Traces of the same types in the same order are updated where they stand, so zoom and hidden traces
        stay as the reader left them. A figure without traces clears the screen.
        """
        new = figure.to_plotly_json()
        with self._lock:
            old, self.shown = self.shown, new
            if self.widget is None or _structure(old) != _structure(new):
                self._replace()
                return
            try:
                self.remember()
                self._change(self.widget, old)
            except Exception:
                self._replace()  # begins anew with what is right, whatever got lost half-way
                raise

    def remember(self) -> None:
        """Make the synchronised state of the widget what it shows.

        Not from the widget's own copy: it leaves out what the browser reports as its own.
        """
        widget = self.widget
        if widget is None:
            return
        traces = zip(self.shown["data"], widget.data, strict=True)
        with widget.hold_sync():
            widget._widget_data = [{**deepcopy(trace), "uid": own.uid} for trace, own in traces]  # noqa: SLF001
            widget._widget_layout = deepcopy(self.shown["layout"])  # noqa: SLF001

    def settle(self) -> None:
        """After the last drawing: begin a new widget if the browser has not said that it drew this one."""
        with self._lock:
            if not self._is_seen:
                self._replace()

    def close(self) -> None:
        """Take everything off the page; safe to call twice."""
        for widget in (self.widget, self.box):
            if widget is not None:
                widget.close()

    def _replace(self) -> None:
        old, self.widget = self.widget, None
        self._is_seen = False
        if self.shown["data"]:
            self.widget = FigureWidget(deepcopy(self.shown))
            self.widget.observe(self._repeat, names=_DRAWN)
        self.box.children = () if self.widget is None else (self.widget,)
        if old is not None:
            old.close()

    def _change(self, widget: FigureWidget, old: Mapping[str, Any]) -> None:
        with widget.batch_update():
            for trace, before, after in zip(widget.data, old["data"], self.shown["data"], strict=True):
                _set(trace, _changes(before, after))
            _set(widget.layout, _changes(old["layout"], self.shown["layout"]))

    def _repeat(self, change: Any) -> None:
        """The browser has drawn the widget for the first time: send what it may have missed."""
        widget = self.widget
        if change["new"] is None or widget is None or change["owner"] is not widget:
            return
        widget.unobserve(self._repeat, names=_DRAWN)
        with self._lock:
            self._is_seen = True
            # the public ways send nothing, because nothing has changed on this side
            for index, trace in enumerate(self.shown["data"]):
                style = {key: [value] for key, value in trace.items() if key not in _KEPT}
                widget._send_restyle_msg(style, index)  # noqa: SLF001
            widget._send_relayout_msg(dict(self.shown["layout"]))  # noqa: SLF001


def _structure(shown: Mapping[str, Any]) -> list[str]:
    return [trace.get("type", "scatter") for trace in shown["data"]]


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Top-level keys to set so that `before` becomes `after`; None removes one."""
    gone = dict.fromkeys(before.keys() - after.keys() - _KEPT)
    return gone | {
        key: value for key, value in after.items() if key not in _KEPT and before.get(key, _KEPT) != value
    }


def _set(part: Any, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        part[key] = deepcopy(value)  # plotly takes out of its copy what the browser reports as its own
