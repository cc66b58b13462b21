"""The rules of a run inside a notebook: the picture, and the table below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from tdbg_lab.notebook.live import LiveView
from tdbg_lab.notebook.rules_table import rules_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.notebook.pace import Pace
    from tdbg_lab.run import Run

__all__ = ["LiveRules"]


class LiveRules(LiveView):
    """The view of the rules with what they found as a table, kept up to date together."""

    def __init__(self, run: Run, params: Mapping[str, Any], *, pace: Pace | None = None) -> None:
        super().__init__(run, "rules", params, pace=pace)
        self.table = ipywidgets.HTML()
        self.widget.children = (*self.widget.children, self.table)

    def refresh(self) -> bool:
        """Read what is new and draw it; True when the picture was drawn again."""
        drew = super().refresh()
        if drew:
            self.table.value = rules_table(self.run)._repr_html_()
        return drew
