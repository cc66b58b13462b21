"""``/tdbg/views`` and ``/tdbg/runs/{id}/views/{view}``: which pictures there are, and one of them."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.requests import parse_view
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

__all__ = ["handlers"]


class ViewsHandler(TdbgHandler):
    """The views."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer each view with its parameters."""
        self.answer({"views": await self.in_thread(_views)})


class ViewHandler(TdbgHandler):
    """One view of one run. ``POST`` only because parameters are long: nothing changes."""

    @web.authenticated
    @authorized_to("read")
    async def post(self, run_id: str, view: str) -> None:
        """Answer the figure as Plotly JSON."""
        request = parse_view(self.body())
        entry = await self.entry(run_id)
        async with self.services.tails.lease(entry) as tail:
            run = await tail.opened()
            self.finish(await self.services.figures.answer(entry, run, view, request.params))


def _views() -> list[dict[str, Any]]:
    from tdbg_lab.views import list_views

    return [each.as_dict() for each in list_views()]


handlers: list[Route] = [
    (r"/tdbg/views", ViewsHandler),
    (rf"/tdbg/runs/{RUN_ID}/views/(?P<view>[a-z][a-z0-9_]{{0,63}})", ViewHandler),
]
