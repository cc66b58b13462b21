"""``/tdbg/rules`` and ``/tdbg/runs/{id}/rules``: which rules there are, where they stand, what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.server.recheck import RecheckTask, changed_rule
from tdbg_lab.server.requests import parse_fix, parse_recheck
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to
from tdbg_lab.server.rule_catalogue import catalogue
from tdbg_lab.store.settings import SettingChange

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.run import Run
    from tdbg_lab.store.settings import SettingRecord

__all__ = ["handlers"]

MAX_FINDINGS = 1000
"""Findings answered; the latest ones."""


class CatalogueHandler(TdbgHandler):
    """The rules there are."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer each rule with its thresholds."""
        await self.answer({"rules": await self.in_thread(catalogue)})


class RulesHandler(TdbgHandler):
    """Rules of a run."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer states and findings."""
        await self.answer(await self.read(run_id, _rules))


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
        await self.answer(self.services.rechecks.start(run_id, task))


class FixHandler(TdbgHandler):
    """What a finding proposes, applied to the training while it goes on."""

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str) -> None:
        """Write the request and answer its id."""
        wanted = parse_fix(self.body()).finding
        by = self.asker
        request = await self.read(run_id, lambda run: _fix(run, wanted, by))
        await self.answer({"request": request})


def _rules(run: Run) -> dict[str, Any]:
    findings = run.findings()[-MAX_FINDINGS:]
    fixable = [one for one in findings if one.fix and one.id]
    ended = _ended(run) if fixable else ""
    asked = {one.finding: one for one in run.setting_changes()} if fixable else {}
    return {
        "states": run.rule_states(),
        "findings": findings,
        "muted": list(run.info.muted),
        "fixes": {one.id: ended or _waiting(asked.get(one.id)) or _misfit(one) for one in fixable},
        "answers": {one.id: _answer(asked[one.id]) for one in fixable if one.id in asked},
    }


def _ended(run: Run) -> str:
    """Why nothing can be changed in this run; empty while it is running."""
    status = run.status
    return "" if status is RunStatus.RUNNING else f"The run is {status}: there is no training to change."


def _waiting(asked: SettingRecord | None) -> str:
    waits = asked is not None and asked.state == "pending"
    return "It was asked for: the training answers at the end of its step." if waits else ""


def _answer(asked: SettingRecord) -> str:
    """What became of the latest request for a fix; empty until the training has answered."""
    told = {"done": "Applied", "refused": "Refused"}.get(asked.state)
    return f"{told}: {asked.answer}" if told else ""


def _misfit(finding: Finding) -> str:
    """Why the fix of a finding is none that a running training takes; empty when it is one."""
    try:
        SettingChange.of(finding.fix or {})
    except ConfigError as error:
        return str(error)
    return ""


def _fix(run: Run, wanted: str, by: str) -> str:
    for finding in run.findings():
        if finding.id == wanted:
            return run.apply_fix(finding, by=by)
    raise NotFoundError(f"There is no finding {wanted[:100]!r} in this run; list its rules again.")


handlers: list[Route] = [
    (r"/tdbg/rules", CatalogueHandler),
    (rf"/tdbg/runs/{RUN_ID}/rules", RulesHandler),
    (rf"/tdbg/runs/{RUN_ID}/rules/(?P<rule>[a-z][a-z0-9_]{{0,63}})/check", RecheckHandler),
    (rf"/tdbg/runs/{RUN_ID}/fix", FixHandler),
]
