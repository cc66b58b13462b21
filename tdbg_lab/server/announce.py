"""Findings and the start and end of runs, over the Jupyter event bus and to all clients."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.clock import since_boot_ns
from tdbg_lab.server.digest import heard
from tdbg_lab.server.jsonable import jsonable

if TYPE_CHECKING:
    from jupyter_events.logger import EventLogger

    from tdbg_lab.records import RunStatus
    from tdbg_lab.run import Run
    from tdbg_lab.server.hub import Hub
    from tdbg_lab.server.tail import RunTail

__all__ = ["FINDING_SCHEMA", "RUN_SCHEMA", "Announcer", "register_schemas"]

log = logging.getLogger(__name__)

RUN_SCHEMA = "https://schema.jupyter.org/tdbg_lab/run/v1"
FINDING_SCHEMA = "https://schema.jupyter.org/tdbg_lab/finding/v1"

MAX_RUNS = 1024
"""Runs whose announcements are remembered."""
MAX_AT_ONCE = 20
"""Findings of one run announced at one refresh; the others are in the list of findings."""


def register_schemas(logger: EventLogger) -> None:
    """Make the event bus know our events."""
    for path in sorted((Path(__file__).parent / "schemas").glob("*.yaml")):
        logger.register_event_schema(path)


@dataclass(slots=True)
class _Said:
    """What was announced of one run."""

    status: RunStatus | None = None
    findings: set[tuple[str, str]] = field(default_factory=set)
    """Id and severity: trouble that gets worse is announced again."""
    counts: tuple[int, ...] = (0, 0, 0, 0)
    """Findings by severity, and those of muted rules."""
    is_followed: bool = False
    """Whether its findings were looked at before: what comes then is new, whatever the clock says."""


class Announcer:
    """Listens to every tail. What happened before the server started is not announced."""

    def __init__(self, logger: EventLogger, hub: Hub) -> None:
        self._logger = logger
        self._hub = hub
        self._since_ns = time.time_ns()
        self._since_boot_ns = since_boot_ns()
        self._said: OrderedDict[tuple[str, str], _Said] = OrderedDict()

    def listen(self, tail: RunTail) -> None:
        """Announce what is new in a run."""
        run, digest = tail.run, tail.digest
        if tail.removed or run is None or digest is None:
            return
        which = tail.entry.id, run.info.id  # another run may have taken the place
        said = self._said.setdefault(which, _Said())
        self._said.move_to_end(which)
        while len(self._said) > MAX_RUNS:
            self._said.popitem(last=False)
        if digest.status is not said.status:
            self._status(tail, run.info.created_ns, said, digest.status)
        counts = (*digest.findings, digest.muted)
        if counts != said.counts:
            said.counts = counts
            self._findings(tail, run, said)
        said.is_followed = True

    def _status(self, tail: RunTail, created_ns: int, said: _Said, status: RunStatus) -> None:
        before, said.status = said.status, status
        first_seen = before is None
        if first_seen and not self._is_recent(created_ns):
            return
        self._emit(RUN_SCHEMA, {**_name(tail), "status": str(status)})

    def _findings(self, tail: RunTail, run: Run, said: _Said) -> None:
        fresh = [each for each in run.findings() if (each.id, str(each.severity)) not in said.findings]
        said.findings.update((each.id, str(each.severity)) for each in fresh)
        # What a muted rule finds counts as said: it is not told later, when the rule is heard again.
        told = [each for each in heard(run, fresh) if said.is_followed or self._is_recent(each.time_ns)]
        for finding in told[-MAX_AT_ONCE:]:
            self._hub.broadcast(
                f"finding/{tail.entry.id}/{finding.id}",
                {"type": "finding", "run": tail.entry.id, "finding": jsonable(finding)},
            )
            self._emit(
                FINDING_SCHEMA,
                {
                    **{key: value for key, value in _name(tail).items() if key != "path"},
                    "id": finding.id,
                    "rule": finding.rule,
                    "severity": str(finding.severity),
                    "message": finding.message,
                    "tensor": finding.tensor,
                    "step_first": int(finding.step_first),
                    "step_last": int(finding.step_last),
                },
            )

    def _is_recent(self, time_ns: int) -> bool:
        """Whether something happened since the server started: later, or not longer ago than that.

        The second holds where the clock was set back meanwhile.
        """
        ago_ns = time.time_ns() - time_ns
        return time_ns >= self._since_ns or 0 <= ago_ns <= since_boot_ns() - self._since_boot_ns

    def _emit(self, schema: str, data: dict[str, Any]) -> None:
        try:
            self._logger.emit(schema_id=schema, data=data)
        except Exception:
            log.exception("An event of %s could not be emitted", schema)


def _name(tail: RunTail) -> dict[str, Any]:
    run = tail.run
    return {
        "run": tail.entry.id,
        "name": run.info.name if run is not None else "",
        "path": tail.entry.relative,
    }
