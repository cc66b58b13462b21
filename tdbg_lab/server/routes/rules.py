"""``GET /tdbg/runs/{id}/rules``: where the rules stand, and what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["handlers"]

MAX_FINDINGS = 1000
"""Findings answered; the latest ones."""


class RulesHandler(TdbgHandler):
    """Rules of a run."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer states and findings."""
        self.answer(await self.read(run_id, _rules))


def _rules(run: Run) -> dict[str, Any]:
    return {
        "states": run.rule_states(),
        "findings": run.findings()[-MAX_FINDINGS:],
        "muted": list(run.info.muted),
    }


handlers: list[Route] = [(rf"/tdbg/runs/{RUN_ID}/rules", RulesHandler)]
