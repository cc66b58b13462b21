"""Bring a figure on the screen up to date with a figure just made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

__all__ = ["Screen"]

_KEPT = {"uid", "type"}


class Screen:
    """A figure widget, and what it shows as plain JSON types.

    Arrays travel in Plotly's base64 form, which costs a twentieth of the nested lists that a FigureWidget
    makes of arrays with two dimensions.

    Attributes
    ----------
    widget
        The `FigureWidget`.
    shown
        What it shows: ``{"data": [...], "layout": {...}}``.
    """

    def __init__(self, widget: go.FigureWidget) -> None:
        self.widget = widget
        self.shown: dict[str, Any] = widget.to_plotly_json()

    def draw(self, figure: go.Figure) -> None:
        """Show `figure`, sending only what differs.

        Traces of the same types in the same order are updated where they stand, so zoom and hidden
        traces stay as the reader left them; otherwise they are replaced.
        """
        old, new = self.shown, figure.to_plotly_json()
        same = [trace["type"] for trace in old["data"]] == [trace["type"] for trace in new["data"]]
        if not same:
            self.widget.data = ()
        with self.widget.batch_update():
            if same:
                for trace, before, after in zip(self.widget.data, old["data"], new["data"], strict=True):
                    _set(trace, _changes(before, after))
            _set(self.widget.layout, _changes(old["layout"], new["layout"]))
        if not same:
            self.widget.add_traces(new["data"])
        self.shown = new
        if not same:
            self.remember()

    def remember(self) -> None:
        """Tell the kernel's copy of the widget what it shows.

        Plotly sends changes as messages and leaves the synchronised state as it was at the beginning; a
        page that is loaded again asks for that state.
        """
        self.widget._repr_mimebundle_()  # what showing it does: copies data and layout into the state


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Top-level keys to set so that `before` becomes `after`; None removes one."""
    gone = dict.fromkeys(before.keys() - after.keys() - _KEPT)
    return gone | {
        key: value for key, value in after.items() if key not in _KEPT and before.get(key, _KEPT) != value
    }


def _set(part: Any, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        part[key] = value
