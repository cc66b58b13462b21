"""Asking one rule one question: about a step, or about silence."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding
from tdbg_lab.rules.judged import failure
from tdbg_lab.rules.kinds import NOTHING, Kinds
from tdbg_lab.rules.wording import worded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.rules.episode import Change
    from tdbg_lab.rules.judged import Judged
    from tdbg_lab.rules.view import RunView

__all__ = ["Question"]

log = logging.getLogger(__name__)


class Question:
    """One rule, asked about the step that a view ends with.

    Parameters
    ----------
    one
        The rule.
    view
        What is known of the run.
    take
        Called with a change of the rule's findings; with None when its finding merely ended.
    kinds
        What was recorded at the step: a rule that reads nothing of it is not asked.
    quiet_s
        Ask about silence of so many seconds instead of about the step.
    """

    def __init__(
        self,
        one: Judged,
        view: RunView,
        take: Callable[[Judged, Change | None], None],
        *,
        kinds: Kinds = NOTHING,
        quiet_s: float | None = None,
    ) -> None:
        self.limit_s = one.rule.time_limit_s
        self._one = one
        self._view = view
        self._take = take
        self._kinds = kinds
        self._quiet_s = quiet_s

    def work(self) -> Finding | Silence | None:
        """Ask; what the rule raises is raised."""
        one, view = self._one, self._view
        view.active = one.episodes.active
        begun_ns = time.thread_time_ns()
        try:
            answer = self._answer()
        finally:
            one.cost_ns += time.thread_time_ns() - begun_ns
        if isinstance(answer, Finding):
            return worded(answer, view.info.framework)
        if answer is None or isinstance(answer, Silence):
            return answer
        raise ConfigError(f"it answered with a {type(answer).__name__}; expected a Finding or None")

    def done(self, result: Finding | Silence | BaseException | None) -> None:
        """Make a finding of the answer, or switch the rule off."""
        one, step = self._one, self._view.step
        if isinstance(result, BaseException):
            log.warning("Rule %s is switched off", one.rule.name, exc_info=result)
            one.error = failure(result, f"at step {step}")
            return
        asked = self._quiet_s is None
        if asked:
            one.step_checked = max(one.step_checked, step)
        if isinstance(result, Silence) or (result is None and not asked):
            return
        active = one.episodes.active
        change = one.episodes.take(step, result, sure=not asked)
        if change is not None or one.episodes.active is not active:
            self._take(one, change)

    def overdue(self) -> None:
        """Switch the rule off."""
        self._one.error = (
            f"A check took longer than {self.limit_s:g} s at step {self._view.step}: "
            "the rule is switched off, the others go on."
        )

    def _answer(self) -> object:
        one, view = self._one, self._view
        if self._quiet_s is not None:
            return one.rule.idle(self._quiet_s, view)
        news = one.look(self._kinds)
        if not news and one.suited:
            return Silence()
        if not one.applies(view):
            return None
        return one.rule.check(view.step, view) if news and not one.warms_up else Silence()


class Silence:
    """The rule was not asked: neither an answer nor an all-clear."""
