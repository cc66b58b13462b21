"""``GET /tdbg/status``: what this server is."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.gpu import gpu_seen
from tdbg_lab.server.routes.base import Route, TdbgHandler
from tdbg_lab.version import installed_version

__all__ = ["handlers"]


class StatusHandler(TdbgHandler):
    """Version, names of the run roots, and whether there is a GPU."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer the status."""
        gpu = await self.in_thread(gpu_seen)
        roots = [root.name for root in self.services.catalog.roots]
        await self.answer({"version": installed_version(), "roots": roots, "gpu": gpu})


handlers: list[Route] = [(r"/tdbg/status", StatusHandler)]
