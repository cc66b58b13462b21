"""``/tdbg/runs/{id}/profile``: profile the training process while it goes on; list what was recorded."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tornado import web

from tdbg_lab.server.requests import parse_profile
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["handlers"]


class ProfileHandler(TdbgHandler):
    """Profiles on demand."""

    @web.authenticated
    @authorized_to("read")
    async def get(self, run_id: str) -> None:
        """Answer the profiles that were recorded and what became of requests for some, oldest first."""
        await self.answer(await self.read(run_id, _profiling))

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str) -> None:
        """Write a request to profile and answer its id."""
        window = parse_profile(self.body())
        by = self.asker
        request = await self.read(run_id, lambda run: run.request_profile(by=by, **window))
        await self.answer({"request": request})


def _profiling(run: Run) -> dict[str, Any]:
    return {"profiles": _profiles(run), "requests": [asdict(one) for one in run.profile_requests()]}


def _profiles(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "rank": one.rank,
            "name": one.name,
            "first_step": one.first_step,
            "last_step": one.last_step,
            "start_ns": one.start_ns,
            "duration_ns": one.duration_ns,
            "problems": list(one.problems),
            "ready": one.ready,
            "files": list(one.files),
        }
        for one in run.profiles()
    ]


handlers: list[Route] = [(rf"/tdbg/runs/{RUN_ID}/profile", ProfileHandler)]
