"""Ask rules about steps, one after the other; keep what they found and what they cost."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, RuleState, RuleStatus
from tdbg_lab.rules.base import Rule
from tdbg_lab.rules.episode import Change, Episodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.rules.base import Needs
    from tdbg_lab.rules.view import RunView

__all__ = ["Engine", "Judged"]

log = logging.getLogger(__name__)

_PATIENCE_STEPS = 3
"""Steps without anything a rule needs before it says that it is not applicable."""


@dataclass(slots=True)
class Judged:
    """A rule at work."""

    rule: Rule
    episodes: Episodes
    resume_step: int = -1
    """Steps before it were checked by an earlier process."""
    step_checked: int = -1
    recorded: int = 0
    """Steps with something that the rule needs."""
    cost_ns: int = 0
    suited: bool = False
    unsuited: int = 0
    """Steps in a row without anything the rule needs."""
    why_unsuited: str = ""
    error: str = ""
    notes: list[str] = field(default_factory=list)
    """What went wrong besides: actions that failed."""

    @property
    def status(self) -> RuleStatus:
        """Where the rule stands while the run goes on."""
        if self.error:
            return RuleStatus.ERROR
        if self.episodes.findings:
            return RuleStatus.ISSUE_FOUND
        unsuited = self.unsuited >= _PATIENCE_STEPS
        return RuleStatus.NOT_APPLICABLE if unsuited else RuleStatus.IN_PROGRESS


class Engine:
    """Rules over one run. A rule that raises is out from then on; the others go on.

    Parameters
    ----------
    rules
        Asked in this order at each step.
    known
        Findings of earlier processes.
    checked
        Last step that each rule was asked about by earlier processes, by name.
    """

    def __init__(
        self, rules: Sequence[Rule], known: Sequence[Finding] = (), checked: Mapping[str, int] | None = None
    ) -> None:
        self.judged: list[Judged] = []
        for rule in rules:
            own = [finding for finding in known if finding.rule == rule.name]
            resume = min([(checked or {}).get(rule.name, -1), *(one.step_last for one in own)])
            confirm = 1 if _is_classic(rule) else rule.confirmations
            episodes = Episodes(own, calm=rule.calm, confirm=confirm)
            self.judged.append(Judged(rule, episodes, resume_step=resume))
        self._ended: RuleStatus | None = None

    @property
    def needs(self) -> list[Needs]:
        """What the rules read."""
        return [one.rule.needs() for one in self.judged]

    @property
    def findings(self) -> list[Finding]:
        """Findings of all rules, earliest first."""
        found = [finding for one in self.judged for finding in one.episodes.findings]
        return sorted(found, key=lambda finding: (finding.step_first, finding.time_ns))

    def check(self, step: int, view: RunView, *, strict: bool = False) -> list[tuple[Judged, Change]]:
        """Ask every rule about a step that `view` ends with; what is new or has changed.

        With `strict`, what a rule raises is raised here.
        """
        changes = []
        for one in self.judged:
            if one.error:
                continue
            if step < one.resume_step:
                one.recorded += _something_new(one.rule, view)
                continue
            change = self._guarded(one, view, partial(_ask, one, step, view), strict=strict)
            if not one.error:
                one.step_checked = max(one.step_checked, step)
            if change is not None:
                changes.append((one, change))
        return changes

    def idle(self, quiet_s: float, view: RunView) -> list[tuple[Judged, Change]]:
        """Ask every rule about a run that has not written for `quiet_s` seconds."""
        changes = []
        for one in self.judged:
            if one.error or type(one.rule).idle is Rule.idle:
                continue
            change = self._guarded(one, view, partial(_ask_idle, one, quiet_s, view))
            if change is not None:
                changes.append((one, change))
        return changes

    def _guarded(
        self, one: Judged, view: RunView, ask: Callable[[], Change | None], *, strict: bool = False
    ) -> Change | None:
        view.open = tuple(other.episodes.active for other in self.judged if other.episodes.active)
        view.active = one.episodes.active
        begun = time.perf_counter_ns()
        try:
            return ask()
        except Exception as error:
            if strict:
                raise
            log.exception("Rule %s ended at step %d", one.rule.name, view.step)
            one.error = f"{type(error).__name__}: {error}"
            return None
        finally:
            one.cost_ns += time.perf_counter_ns() - begun

    def end(self, *, stopped: bool = False) -> None:
        """No more steps will come; `stopped` when that was somebody's wish."""
        self._ended = RuleStatus.STOPPED if stopped else RuleStatus.NO_ISSUE

    def states(self) -> list[RuleState]:
        """Where each rule stands."""
        return [self._state(one) for one in self.judged]

    def _state(self, one: Judged) -> RuleState:
        status = one.status
        if self._ended is not None:
            if status is RuleStatus.IN_PROGRESS and one.why_unsuited:
                status = RuleStatus.NOT_APPLICABLE
            elif status is RuleStatus.IN_PROGRESS:
                status = self._ended
        reasons = [one.error, one.why_unsuited if status is RuleStatus.NOT_APPLICABLE else "", *one.notes]
        return RuleState(
            rule=one.rule.name,
            status=status,
            reason=" ".join(filter(None, reasons)),
            step_checked=max(one.step_checked, one.resume_step),
            findings=len(one.episodes.findings),
            cost_ms=one.cost_ns / 1e6,
            parameters=one.rule.parameters,
        )


def _is_classic(rule: Rule) -> bool:
    return bool(getattr(rule, "classic", False))


def _ask(one: Judged, step: int, view: RunView) -> Change | None:
    news = _something_new(one.rule, view)
    one.recorded += news
    if not news and one.suited:
        return None
    one.why_unsuited = one.rule.not_applicable(view)
    one.suited = not one.why_unsuited
    one.unsuited = 0 if one.suited else one.unsuited + 1
    if not one.suited:
        return one.episodes.take(step, None)
    if not news or (one.recorded <= one.rule.warm_up and not _is_classic(one.rule)):
        return None
    return one.episodes.take(step, _finding(one.rule.check(step, view), "check"))


def _ask_idle(one: Judged, quiet_s: float, view: RunView) -> Change | None:
    answer = _finding(one.rule.idle(quiet_s, view), "idle")
    return None if answer is None else one.episodes.take(max(view.step, answer.step_last), answer, sure=True)


def _finding(answer: object, method: str) -> Finding | None:
    if answer is not None and not isinstance(answer, Finding):
        raise ConfigError(f"{method} gave a {type(answer).__name__}; expected a Finding or None.")
    return answer


def _something_new(rule: Rule, view: RunView) -> bool:
    """Whether the step has any of the kinds that the rule needs; silence is not an all-clear."""
    kinds = rule.needs().kinds
    return not kinds or any(not view.frame(mode).kinds.isdisjoint(kinds) for mode in view.modes)
