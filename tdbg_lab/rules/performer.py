"""Does what is to be done about findings."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from tdbg_lab.actions import Message, StopTraining
from tdbg_lab.records import Finding, Severity
from tdbg_lab.rules.acting import Failure, Worker
from tdbg_lab.rules.episode import SEVERITIES, News
from tdbg_lab.rules.retrying import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from tdbg_lab.actions import Action, ActionContext
    from tdbg_lab.rules.episode import Change
    from tdbg_lab.rules.judged import Judged

__all__ = ["ACTIONS", "Performer"]

ACTIONS = "actions"
"""The name in place of a rule's under which actions that failed are told."""
_TRIES = "tries"
"""Evidence of what is tried again: how often it was."""
_MAX_NOTES = 5
_MAX_REMEMBERED = 1000
_LAST_WAIT_S = 30.0

_Key = tuple[str, int]
"""Name of the rule, ``""`` for all of them, and number of the action."""


class Performer:
    """Performs actions, each in a thread of its own.

    What an action raises, and that it hangs, becomes a note in the state of the rule and a finding
    of its own. One that is performed once a run and failed is tried again a few times, ever more seldom;
    its note and its finding then say how that went.

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
        self._retries: dict[_Key, Retry] = {}
        self._noted: dict[_Key, str] = {}
        """What the notes of its rule say of an action."""
        self._ends = False
        """Whether nothing is tried again any more."""
        self._judged: dict[str, Judged] = {}
        self._found: dict[str, Finding] = {}
        """Findings of the run by id, in the order in which they were made or became worse."""

    def forget_nothing(self, judged: Sequence[Judged], told: Iterable[Finding] = ()) -> None:
        """Take over from an earlier process: what was found then was acted upon then.

        What had failed and was to be tried again, as it `told`, is.
        """
        known = sorted(
            (finding for one in judged for finding in one.episodes.findings), key=lambda one: one.time_ns
        )
        for finding in known:
            self._remember(finding)
            actions = next(one.rule.actions for one in judged if one.rule.name == finding.rule)
            for key, action in self._of(finding.rule, actions):
                if action.once and self._is_met(action):
                    self._last_s[key] = self._clock()
        # The findings are from a run directory, which may be anybody's: a number of tries is looked at first.
        waiting = {
            one.id: one for one in told if one.rule == ACTIONS and isinstance(one.evidence.get(_TRIES), int)
        }
        for one in judged if waiting else ():
            for key, action in self._of(one.rule.name, one.rule.actions):
                before = waiting.get(_identity(type(action).__name__, one.rule.name, key))
                if before is not None and before.cause in self._found:
                    self._take_over(one, key, action, before)

    def _take_over(self, one: Judged, key: _Key, action: Action, told: Finding) -> None:
        """Try an action again that failed in an earlier process."""
        self._judged[one.rule.name] = one
        self._workers[key] = Worker(action, self._context)
        why = told.message.partition(": ")[2]
        tries = int(told.evidence[_TRIES])
        failure = Failure(type(action).__name__, self._found[told.cause], why)
        self._retries[key] = Retry(failure, tries, due_s=self._clock())

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
        for key, worker in self._workers.items():
            idle, failures = worker.idle, worker.failures()  # in this order: what is idle has told all
            found += [self._failed(key, worker, failure) for failure in failures]
            retry = self._retries.get(key)
            if retry is not None and retry.due_s is None and idle and not failures and not worker.hangs:
                del self._retries[key]
                found.append(self._tell(key, retry.failure, retry.performed()))
        self._try_again()
        return found

    def wait(self, limit_s: float = _LAST_WAIT_S) -> None:
        """Wait until all actions are performed, hang, or `limit_s` seconds are over."""
        deadline_s = time.monotonic() + limit_s
        for worker in self._workers.values():
            worker.wait(deadline_s)

    def finish(self) -> list[Finding]:
        """The last time: try what failed once more, now, and wait for all actions; gives what failed."""
        self.wait()
        found = self.collect()
        self._ends = True
        self._try_again()
        self.wait()
        return found + self.collect()

    def _try_again(self) -> None:
        for key, retry in self._retries.items():
            if retry.due_s is not None and (self._ends or self._clock() >= retry.due_s):
                retry.due_s = None
                self._workers[key].ask(retry.failure.finding)

    def _failed(self, key: _Key, worker: Worker, failure: Failure) -> Finding:
        if not worker.action.once:
            return self._tell(key, failure, f"failed: {failure.message}")
        retry = self._retries.setdefault(key, Retry(failure))
        text = retry.failed(failure, worker, self._clock(), last=self._ends)
        if retry.due_s is None:
            del self._retries[key]
        return self._tell(key, failure, text, {} if retry.due_s is None else {_TRIES: retry.tries})

    def _tell(
        self, key: _Key, failure: Failure, text: str, evidence: Mapping[str, int] | None = None
    ) -> Finding:
        """How an action fared, as a finding and among the notes of the rule, in place of what was told."""
        rule = failure.finding.rule
        one = self._judged.get(rule)
        if one is not None:
            notes = [note for note in one.notes if note != self._noted.get(key)]
            self._noted[key] = note = f"{failure.action} {text}"
            one.notes[:] = notes if note in notes or len(notes) >= _MAX_NOTES else [*notes, note]
        message = f"The action {failure.action} for {rule} {text}"
        return _finding(failure, _identity(failure.action, rule, key), message, evidence or {})

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


def _identity(action: str, rule: str, key: _Key) -> str:
    """Id of the finding that tells how an action fared."""
    return hashlib.sha256("/".join((ACTIONS, action, rule, *map(str, key))).encode()).hexdigest()[:16]


def _finding(failure: Failure, identity: str, message: str, evidence: Mapping[str, int]) -> Finding:
    """How an action fared, as a finding beside those of the rules."""
    return Finding(
        rule=ACTIONS,
        severity=Severity.NOTICE,
        step_first=failure.finding.step_last,
        step_last=failure.finding.step_last,
        message=message,
        evidence=evidence,
        advice=("The training and the rules are not affected; see to the action's own settings.",),
        cause=failure.finding.id,
        time_ns=time.time_ns(),
        id=identity,
    )
