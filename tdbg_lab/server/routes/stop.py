"""``POST /tdbg/runs/{id}/stop``: ask the training process to stop at the end of its step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tornado import web

from tdbg_lab.errors import ConflictError
from tdbg_lab.records import RunStatus
from tdbg_lab.server.requests import parse_stop
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["handlers"]


class StopHandler(TdbgHandler):
    """Stop requests."""

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str) -> None:
        """Write a stop request and answer its id."""
        stop = parse_stop(self.body())
        by = self.current_user.username if self.current_user else ""
        request = await self.read(run_id, lambda run: _stop(run, stop.reason, by))
        self.answer({"request": request})


def _stop(run: Run, reason: str, by: str) -> str:
    if run.status is not RunStatus.RUNNING:
        raise ConflictError(f"The run is {run.status}, not running: there is nothing to stop.")
    return run.request_stop(reason=reason, by=by)


handlers: list[Route] = [(rf"/tdbg/runs/{RUN_ID}/stop", StopHandler)]
