"""The Jupyter server extension."""

from __future__ import annotations

from jupyter_server.extension.application import ExtensionApp

__all__ = ["TdbgApp"]


class TdbgApp(ExtensionApp):
    """Serves runs, views and rules to the Lab front end."""

    name = "tdbg_lab"
