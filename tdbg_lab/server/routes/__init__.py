"""The routes, one file for each subject. Each has a list ``handlers``; `all_handlers` joins them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.server.routes.base import Route

__all__ = ["all_handlers"]


def all_handlers() -> list[Route]:
    """Every route of the extension, relative to the server's base URL."""
    from tdbg_lab.server.routes import (
        jobs,
        plotly,
        profile,
        report,
        rules,
        runs,
        settings,
        status,
        stop,
        stream,
        tensors,
        views,
    )

    modules = (status, runs, tensors, views, jobs, report, rules, stop, settings, profile, plotly, stream)
    return [route for module in modules for route in module.handlers]
