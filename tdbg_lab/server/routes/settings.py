"""``/tdbg/runs/{id}/settings``: change a setting of a training while it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.requests import parse_setting
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["handlers"]

MAX_CHANGES = 200
"""Changes answered; the latest ones."""


class SettingsHandler(TdbgHandler):
    """Changes of settings: what was asked for, and asking for one more."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer the changes so far."""
        await self.answer({"changes": await self.read(run_id, _changes)})

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str) -> None:
        """Write a request to change a setting and answer its id."""
        asked = parse_setting(self.body())
        by = self.asker
        request = await self.read(
            run_id, lambda run: run.request_setting(asked.change, reason=asked.reason, by=by)
        )
        await self.answer({"request": request})


def _changes(run: Run) -> list[Any]:
    return run.setting_changes()[-MAX_CHANGES:]


handlers: list[Route] = [(rf"/tdbg/runs/{RUN_ID}/settings", SettingsHandler)]
