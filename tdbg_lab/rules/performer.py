"""Does what is to be done about findings."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from tdbg_lab.actions import Message, StopTraining
from tdbg_lab.records import Finding, Severity
from tdbg_lab.rules.acting import Failure, Worker
from tdbg_lab.rules.episode import SEVERITIES, News

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from tdbg_lab.actions import Action, ActionContext
    from tdbg_lab.rules.episode import Change
    from tdbg_lab.rules.judged import Judged

__all__ = ["ACTIONS", "Performer"]

ACTIONS = "actions"
"""The name in place of a rule's under which actions that failed are told."""
_MAX_NOTES = 5
_MAX_REMEMBERED = 1000
_LAST_WAIT_S = 30.0

_Key = tuple[str, int]
"""Name of the rule, ``""`` for all of them, and number of the action."""


class Performer:
    """Performs actions, each in a thread of its own.

    What an action raises, and that it hangs, becomes a note in the state of the rule and a finding
    of its own.

    Parameters
    ----------
    context
        The run.
    actions
        Actions for the findings of all rules, beside those of each rule.
    stop_on
        Ask training to stop at findings of this severity and above, whatever the rule; None for never.
    clock
        Monotonic clock, s.
    """

    def __init__(
        self,
        context: ActionContext,
        *,
        actions: Sequence[Action] = (),
        stop_on: Severity | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._actions = tuple(actions)
        self._stop_on = stop_on
        self._clock = clock
        self.muted: Container[str] = ()
        """Rules whose findings nobody is told about."""
        self._last_s: dict[_Key, float] = {}
        self._workers: dict[_Key, Worker] = {}
        self._judged: dict[str, Judged] = {}
        self._found: dict[str, Finding] = {}
        """Findings of the run by id, in the order in which they were made or became worse."""

    def forget_nothing(self, judged: Sequence[Judged]) -> None:
        """Take over from an earlier process: what was found then was acted upon then."""
        known = sorted(
            (finding for one in judged for finding in one.episodes.findings), key=lambda one: one.time_ns
        )
        for finding in known:
            self._remember(finding)
            actions = next(one.rule.actions for one in judged if one.rule.name == finding.rule)
            for key, action in self._of(finding.rule, actions):
                if action.once and self._is_met(action):
                    self._last_s[key] = self._clock()

    def perform(self, one: Judged, change: Change) -> None:
        """Do what is to be done about a finding that is new or has become worse."""
        finding, news = change.finding, change.news
        if news not in {News.NEW, News.WORSE}:
            return
        self._judged[one.rule.name] = one
        self._remember(finding)
        muted = one.rule.name in self.muted
        for key, action in self._of(one.rule.name, one.rule.actions):
            counts = news is News.NEW or finding.severity is Severity.CRITICAL or action.when is not None
            if counts and not (muted and isinstance(action, Message)) and self._is_met(action):
                self._ask(key, action, finding)
        wanted = self._stop_on is not None and SEVERITIES.index(finding.severity) >= SEVERITIES.index(
            self._stop_on
        )
        if wanted:
            self._ask(("--stop-on", 0), StopTraining(), finding)

    def collect(self) -> list[Finding]:
        """What failed since the last call, as findings; rules have it in their notes then."""
        found = []
        for worker in self._workers.values():
            for failure in worker.failures():
                rule = failure.finding.rule
                text = f"{failure.action} failed: {failure.message}"
                one = self._judged.get(rule)
                if one is not None and len(one.notes) < _MAX_NOTES and text not in one.notes:
                    one.notes.append(text)
                found.append(_finding(failure, rule))
        return found

    def wait(self, limit_s: float = _LAST_WAIT_S) -> None:
        """Wait until all actions are performed, hang, or `limit_s` seconds are over."""
        deadline_s = time.monotonic() + limit_s
        for worker in self._workers.values():
            worker.wait(deadline_s)

    def _of(self, rule: str, actions: Sequence[Action]) -> list[tuple[_Key, Action]]:
        """The actions for findings of a rule: its own, and those for all rules."""
        own = [((rule, number), action) for number, action in enumerate(actions)]
        return own + [(("", number), action) for number, action in enumerate(self._actions)]

    def _is_met(self, action: Action) -> bool:
        return action.when is None or action.when.met(list(self._found.values()))

    def _remember(self, finding: Finding) -> None:
        identity = finding.id or f"{len(self._found)}"
        self._found.pop(identity, None)
        self._found[identity] = finding
        if len(self._found) > _MAX_REMEMBERED:
            del self._found[next(iter(self._found))]

    def _ask(self, key: _Key, action: Action, finding: Finding) -> None:
        now_s = self._clock()
        last_s = self._last_s.get(key)
        if last_s is not None and (action.once or now_s - last_s < action.cooldown_s):
            return
        self._last_s[key] = now_s
        if key not in self._workers:
            self._workers[key] = Worker(action, self._context)
        self._workers[key].ask(finding)


def _finding(failure: Failure, rule: str) -> Finding:
    """An action that failed, as a finding beside those of the rules."""
    identity = hashlib.sha256(f"{ACTIONS}/{failure.action}/{rule}".encode()).hexdigest()[:16]
    return Finding(
        rule=ACTIONS,
        severity=Severity.NOTICE,
        step_first=failure.finding.step_last,
        step_last=failure.finding.step_last,
        message=f"The action {failure.action} for {rule} failed: {failure.message}",
        advice=("The training and the rules are not affected; see to the action's own settings.",),
        cause=failure.finding.id,
        time_ns=time.time_ns(),
        id=identity,
    )
