"""Follow a run, ask the rules, write down what they find, act on it."""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.actions import ActionContext
from tdbg_lab.errors import StoreError, TdbgError
from tdbg_lab.records import Mode
from tdbg_lab.rules.engine import Engine
from tdbg_lab.rules.episode import Change, News
from tdbg_lab.rules.feed import Feed
from tdbg_lab.rules.performer import Performer
from tdbg_lab.store import (
    FindingsWriter,
    read_findings,
    read_rule_states,
    read_rule_status,
    write_rule_states,
)
from tdbg_lab.store.attempts import first_rank_attempts
from tdbg_lab.store.schema import mode_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tdbg_lab.actions import Action
    from tdbg_lab.records import Finding, RuleState, Severity
    from tdbg_lab.rules.base import Rule
    from tdbg_lab.rules.engine import Judged
    from tdbg_lab.store.attempts import Attempts

__all__ = ["Runner"]

log = logging.getLogger(__name__)

_IDLE_NS = 1_000_000_000
_STATUS_NS = 500_000_000
_HEARTBEAT_NS = 5_000_000_000
_FIRST_UPDATE_NS = 2_000_000_000
_LAST_UPDATE_NS = 60_000_000_000


@dataclass(slots=True)
class _Told:
    """A finding on its way to the file."""

    finding: Finding
    due_ns: int
    """When its growth is written next."""
    wait_ns: int
    written: bool = False
    lost: bool = False
    """Whether it was to be written and could not be."""


class Runner:
    """Rules on a live run, in a process of their own.

    A finding is written at once when it is new or more severe, and now and then while it lasts. All
    of it survives the process: another runner goes on where this one was, and tells nothing twice.

    Parameters
    ----------
    run_path
        Run directory.
    rules
        Rules to ask, causes before consequences.
    broken
        States of rules that could not be made, to be shown beside the others.
    actions
        For the findings of all rules, beside what each rule has.
    stop_on
        Severity from which training is asked to stop, or None.
    stands_in
        Whether it does what another runner should: it leaves when that one is back. One that was killed is
        started again, and one that was frozen may thaw.
    """

    def __init__(
        self,
        run_path: Path,
        rules: Sequence[Rule],
        *,
        broken: Sequence[RuleState] = (),
        actions: Sequence[Action] = (),
        stop_on: Severity | None = None,
        name: str = "",
        stands_in: bool = False,
    ) -> None:
        self._path = run_path
        self._id = uuid.uuid4().hex
        self._stands_in = stands_in
        self._looked_ns = 0
        self._broken = tuple(broken)
        known = _latest(read_findings(run_path))
        attempts = first_rank_attempts(run_path)
        self._attempt = attempts.latest
        self._engine = Engine(rules, known, _checked(run_path, attempts))
        self._feed = Feed.of(run_path, self._engine.needs)
        self._idle_ns = 0
        self._performer = Performer(ActionContext(run_path, name), actions=actions, stop_on=stop_on)
        self._performer.forget_nothing(self._engine.judged, known)
        self._writer: FindingsWriter | None = None
        self._told: dict[str, _Told] = {}
        self._status_ns = 0
        self._dirty = True
        self._ended = False

    @property
    def findings(self) -> list[Finding]:
        """Every finding so far."""
        return self._engine.findings

    def run(
        self, wakes: Iterable[None], over: Callable[[], str | None], asked: Callable[[], bool] = lambda: False
    ) -> str:
        """Work at each wake until `over` gives a reason to end; then once more for the last rows.

        Parameters
        ----------
        asked
            Whether somebody asked to stop, however much is left to check.

        Returns
        -------
        str
            Why it ended.
        """
        reason = "asked to stop"
        ended = False
        for _ in wakes:
            if self.is_relieved():
                self.leave()
                return "another runner looks after the run"
            why = over()
            if self.work(last=why is not None, enough=asked) and why is not None:
                reason, ended = why, True
                break
        self.close(stopped=not ended)
        return reason

    def work(self, *, last: bool = False, enough: Callable[[], bool] = lambda: False) -> bool:
        """Check what can be checked now; `last` when nothing more will come.

        Returns
        -------
        bool
            Whether that was all: after each step `enough` may say that the rest has to wait.
        """
        for step in self._feed.steps(last=last):
            self._take(self._engine.check(step, self._feed.view))
            self._dirty = True
            self._write_status()
            if enough():
                self._take_failures(self._performer.collect())
                return False
        if not last:
            self._ask_idle()
        self._take_failures(self._performer.finish() if last else self._performer.collect())
        self._write_status()
        return True

    def is_relieved(self) -> bool:
        """Whether the sign of life of another runner stands where a stand-in wrote its own.

        Looks at most twice a second. Of two that stand in one stays, as the one that leaves writes no more.
        """
        now_ns = time.monotonic_ns()
        if not self._stands_in or not self._status_ns or now_ns - self._looked_ns < _STATUS_NS:
            return False
        self._looked_ns = now_ns
        other = read_rule_status(self._path).get("runner")
        return isinstance(other, str) and other != self._id

    def leave(self) -> None:
        """End without a word: another runner has the last one."""
        if self._writer is not None:
            self._writer.close()

    def _ask_idle(self) -> None:
        """Ask about silence, about once a second while nothing is written."""
        now_ns = time.monotonic_ns()
        if self._feed.quiet_s * 1e9 < _IDLE_NS or now_ns - self._idle_ns < _IDLE_NS:
            return
        self._idle_ns = now_ns
        changes = self._engine.idle(self._feed.quiet_s, self._feed.view)
        self._dirty |= bool(changes)
        self._take(changes)

    def _take(self, changes: Iterable[tuple[Judged, Change]]) -> None:
        self._performer.muted = self._feed.view.info.muted
        for one, change in changes:
            self._tell(change)
            self._performer.perform(one, change)

    def _take_failures(self, failures: Iterable[Finding]) -> None:
        """Tell what went wrong with actions, beside the findings."""
        for finding in failures:
            self._append(finding)
            self._dirty = True

    def close(self, *, stopped: bool = False) -> None:
        """Write the last word. `stopped` when the run goes on without us."""
        self._engine.end(stopped=stopped)
        self._ended = True
        self._dirty = True
        self._write_status(now=True)
        self.leave()

    def _tell(self, change: Change) -> None:
        """Write what is new at once, and what merely lasts ever more seldom."""
        finding, news = change.finding, change.news
        now_ns = time.monotonic_ns()
        told = self._told.setdefault(finding.id, _Told(finding, now_ns + _FIRST_UPDATE_NS, _FIRST_UPDATE_NS))
        told.finding = finding
        told.written = False
        if news is News.LONGER and now_ns < told.due_ns:
            return
        self._write(told)
        told.wait_ns = min(2 * told.wait_ns, _LAST_UPDATE_NS)
        told.due_ns = now_ns + told.wait_ns

    def _write(self, told: _Told) -> None:
        told.written = self._append(told.finding)
        told.lost = not told.written

    def _append(self, finding: Finding) -> bool:
        """Write a finding; False when it cannot be: a full disk may have room again."""
        try:
            if self._writer is None:
                self._writer = FindingsWriter(self._path)
            self._writer.append(finding)
        except StoreError as error:
            log.warning("A finding cannot be written: %s", error)
            return False
        return True

    def _write_status(self, *, now: bool = False) -> None:
        """Write where the rules stand, and what could not be: soon after a change, seldom otherwise."""
        time_ns = time.monotonic_ns()
        wait_ns = _STATUS_NS if self._dirty else _HEARTBEAT_NS
        if not now and time_ns - self._status_ns < wait_ns:
            return
        self._status_ns = time_ns
        self._dirty = False
        for told in self._told.values():
            if told.lost or (now and not told.written):
                self._write(told)
        try:
            states = [*self._engine.states(), *self._broken]
            doubted = self._engine.doubted_since
            facts = {
                "doubted_since": doubted,
                "ended": self._ended,
                "attempt": self._attempt,
                "runner": self._id,
            }
            write_rule_states(self._path, states, **facts)
        except TdbgError as error:
            log.debug("The state of the rules cannot be written: %s", error)


def _checked(run_path: Path, attempts: Attempts) -> dict[str, int]:
    """The step from which each rule goes on: answers that were not yet a finding are asked for again.

    So are steps that training has made anew since, or is about to.
    """
    status = read_rule_status(run_path)
    seen = status.get("attempt")
    end = attempts.end(seen if isinstance(seen, int) else 0, mode_code(Mode.TRAIN))
    checked = {state.rule: min(state.step_checked, end - 1) for state in read_rule_states(run_path)}
    doubted = status.get("doubted_since")
    for rule, step in doubted.items() if isinstance(doubted, dict) else ():
        if rule in checked and isinstance(step, int):
            checked[rule] = min(checked[rule], step)
    return checked


def _latest(findings: Sequence[Finding]) -> list[Finding]:
    """The last state of each finding, in the order of their first appearance."""
    found: dict[str, Finding] = {}
    for finding in findings:
        found[finding.id] = finding
    return list(found.values())
