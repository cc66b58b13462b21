"""``POST /tdbg/runs/{id}/stop``: ask the training process to stop at the end of its step."""

from __future__ import annotations

from tornado import web

from tdbg_lab.server.requests import parse_stop
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

__all__ = ["handlers"]


class StopHandler(TdbgHandler):
    """Stop requests."""

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str) -> None:
        """Write a stop request and answer its id."""
        stop = parse_stop(self.body())
        by = self.asker
        request = await self.read(run_id, lambda run: run.request_stop(reason=stop.reason, by=by))
        await self.answer({"request": request})


handlers: list[Route] = [(rf"/tdbg/runs/{RUN_ID}/stop", StopHandler)]
