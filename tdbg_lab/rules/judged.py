"""A rule at work on one run: where it stands, what it cost."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.records import RuleState, RuleStatus
from tdbg_lab.rules.base import Needs, Rule

if TYPE_CHECKING:
    from tdbg_lab.rules.episode import Episodes
    from tdbg_lab.rules.kinds import Kinds
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["Judged", "failure"]

_PATIENCE_STEPS = 3
"""Steps without anything a rule needs before it says that it is not applicable."""
_MAX_CHARS = 500
_LOOKS = 16
"""Whether a rule applies is asked at each of its first recorded steps, then at every so many."""


@dataclass
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
    """Processor time of its checks."""
    suited: bool = False
    unsuited: int = 0
    """Times in a row that the rule said it had nothing to look at."""
    why_unsuited: str = ""
    error: str = ""
    notes: list[str] = field(default_factory=list)
    """What went wrong besides: actions that failed."""
    needs: Needs = field(init=False)
    """What the rule reads."""
    _seen: Layout | None = None
    """Tensors that were seen when the rule was asked whether it applies."""

    def __post_init__(self) -> None:
        try:
            self.needs = self.rule.needs()
        except Exception as error:  # noqa: BLE001 - whatever the user's class does
            self.needs = Needs()
            self.error = failure(error, "before the first step")

    @property
    def is_classic(self) -> bool:
        """Whether the rule follows a documented condition to the letter."""
        return bool(getattr(self.rule, "classic", False))

    @property
    def warms_up(self) -> bool:
        """Whether it is too early for the rule to speak."""
        return self.recorded <= self.rule.warm_up and not self.is_classic

    def look(self, kinds: Kinds) -> bool:
        """Count a step if any of its kinds is one that the rule needs: silence is no all-clear."""
        seen = kinds.of_all if self.needs.evaluations else kinds.judged
        news = not self.needs.kinds or not seen.isdisjoint(self.needs.kinds)
        self.recorded += news
        return news

    def applies(self, view: RunView) -> bool:
        """Whether the rule has something to look at; asked seldom once it had."""
        seen = view.seen
        if seen is self._seen and self._is_settled:
            self.unsuited += not self.suited
            return self.suited
        self._seen = seen
        self.why_unsuited = self.rule.not_applicable(view)
        self.suited = not self.why_unsuited
        self.unsuited = 0 if self.suited else self.unsuited + 1
        return self.suited

    @property
    def _is_settled(self) -> bool:
        """Whether the last answer to whether the rule applies holds as long as no other tensor is seen."""
        if type(self.rule).not_applicable is Rule.not_applicable:  # it asks for nothing else
            return True
        return self.suited and self.recorded > _LOOKS and self.recorded % _LOOKS > 0

    def state(self, ended: RuleStatus | None) -> RuleState:
        """Where the rule stands; `ended` says how it stands without a finding when the run is over."""
        status = self._status
        if ended is not None and status is RuleStatus.IN_PROGRESS:
            status = RuleStatus.NOT_APPLICABLE if self.why_unsuited else ended
        reasons = [self.error, self.why_unsuited if status is RuleStatus.NOT_APPLICABLE else "", *self.notes]
        return RuleState(
            rule=self.rule.name,
            status=status,
            reason=" ".join(filter(None, reasons)),
            step_checked=max(self.step_checked, self.resume_step),
            findings=len(self.episodes.findings),
            cost_ms=self.cost_ns / 1e6,
            parameters=self.rule.parameters,
        )

    @property
    def _status(self) -> RuleStatus:
        if self.error:
            return RuleStatus.ERROR
        if self.episodes.findings:
            return RuleStatus.ISSUE_FOUND
        unsuited = self.unsuited >= _PATIENCE_STEPS
        return RuleStatus.NOT_APPLICABLE if unsuited else RuleStatus.IN_PROGRESS


def failure(error: BaseException, when: str) -> str:
    """One sentence: what a rule raised, when, and where in its file."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())[:_MAX_CHARS].rstrip(".")
    return (
        f"{type(error).__name__} {when}{where}{f': {text}' if text else ''}. "
        "The rule is switched off, the others go on."
    )
