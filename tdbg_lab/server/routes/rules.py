"""``/tdbg/rules`` and ``/tdbg/runs/{id}/rules``: which rules there are, where they stand, what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.server.recheck import RecheckTask, changed_rule
from tdbg_lab.server.requests import parse_recheck
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to
from tdbg_lab.server.rule_catalogue import catalogue

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["handlers"]

MAX_FINDINGS = 1000
"""Findings answered; the latest ones."""


class CatalogueHandler(TdbgHandler):
    """The rules there are."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer each rule with its thresholds."""
        self.answer({"rules": await self.in_thread(catalogue)})


class RulesHandler(TdbgHandler):
    """Rules of a run."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer states and findings."""
        self.answer(await self.read(run_id, _rules))


class RecheckHandler(TdbgHandler):
    """One rule over all that a run has recorded, with other thresholds."""

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str, rule: str) -> None:
        """Start the check in a worker process and answer its job."""
        parameters = parse_recheck(self.body()).parameters
        entry = await self.entry(run_id)
        await self.in_thread(changed_rule, rule, parameters)  # what does not fit is said here, not by a job
        last_step = await self.read(run_id, lambda run: run.last_step)
        task = RecheckTask(entry.directory, rule, parameters, last_step)
        self.answer(self.services.rechecks.start(run_id, task))


def _rules(run: Run) -> dict[str, Any]:
    return {
        "states": run.rule_states(),
        "findings": run.findings()[-MAX_FINDINGS:],
        "muted": list(run.info.muted),
    }


handlers: list[Route] = [
    (r"/tdbg/rules", CatalogueHandler),
    (rf"/tdbg/runs/{RUN_ID}/rules", RulesHandler),
    (rf"/tdbg/runs/{RUN_ID}/rules/(?P<rule>[a-z][a-z0-9_]{{0,63}})/check", RecheckHandler),
]
