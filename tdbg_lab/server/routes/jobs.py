"""``/tdbg/jobs/{job}``: cancel long work, or fetch what it made."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.routes.base import Route, TdbgHandler

__all__ = ["handlers"]


class JobHandler(TdbgHandler):
    """One job."""

    @web.authenticated
    @authorized
    async def get(self, job: str) -> None:
        """Answer where a check or a report stands, with its result once it is done."""
        await self.answer(self.services.asked.told(job))

    @web.authenticated
    @authorized
    async def delete(self, job: str) -> None:
        """Cancel it."""
        self.services.jobs.cancel(job)
        self.set_status(204)
        self.finish()


handlers: list[Route] = [(r"/tdbg/jobs/(?P<job>[0-9a-f]{32})", JobHandler)]
