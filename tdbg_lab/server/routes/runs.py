"""``/tdbg/runs`` and ``/tdbg/runs/{id}``: the list of runs, and one run."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.delete import delete_run
from tdbg_lab.server.requests import parse_edit
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler

__all__ = ["handlers"]


class RunsHandler(TdbgHandler):
    """All runs under the roots."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer the list, newest first."""
        snapshot = await self.services.catalog.fresh()
        runs = await self.in_thread(self.services.summaries.all)
        self.services.backfill.start()
        await self.answer({"runs": runs, "truncated": snapshot.truncated, "unread": snapshot.unread})


class RunHandler(TdbgHandler):
    """One run."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer everything about the run that is not a picture."""
        entry = await self.entry(run_id)
        async with self.services.tails.lease(entry) as tail:
            run = await tail.opened()
            await self.answer(await self.in_thread(self.services.summaries.detail, entry, run))

    @web.authenticated
    @authorized
    async def patch(self, run_id: str) -> None:
        """Change name, tags, notes or the muted rules."""
        edit = parse_edit(self.body())
        entry = await self.entry(run_id)
        async with self.services.tails.lease(entry) as tail:
            run = await tail.opened()
            await self.in_thread(run.edit, name=edit.name, tags=edit.tags, notes=edit.notes, muted=edit.muted)
            await self.services.catalog.reread(entry)
            tail.tell()  # who watches was perhaps told before, without the edit
            tail.wake()
        self.services.hub.runs_changed()
        await self.answer(self.services.summaries.of(entry))

    @web.authenticated
    @authorized
    async def delete(self, run_id: str) -> None:
        """Delete the run's files."""
        entry = await self.entry(run_id)
        await self.in_thread(delete_run, entry)
        self.services.catalog.forget(run_id)
        tail = self.services.tails.get(run_id)
        if tail is not None:
            tail.wake()
        self.services.hub.runs_changed()
        self.set_status(204)
        self.finish()


handlers: list[Route] = [
    (r"/tdbg/runs", RunsHandler),
    (rf"/tdbg/runs/{RUN_ID}", RunHandler),
]
