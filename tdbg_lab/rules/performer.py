"""Does what is to be done about findings."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tdbg_lab.actions import Notify, StopTraining
from tdbg_lab.records import Severity
from tdbg_lab.rules.episode import SEVERITIES, Change, News

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from tdbg_lab.actions import Action, ActionContext
    from tdbg_lab.rules.engine import Judged

__all__ = ["Performer"]

log = logging.getLogger(__name__)

_MAX_NOTES = 5


class Performer:
    """Performs the actions of rules. What an action raises becomes a note in the state of its rule.

    Parameters
    ----------
    context
        The run.
    stop_on
        Ask training to stop at findings of this severity and above, whatever the rule; None for never.
    clock
        Monotonic clock, s.
    """

    def __init__(
        self,
        context: ActionContext,
        *,
        stop_on: Severity | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._stop_on = stop_on
        self._clock = clock
        self.muted: Container[str] = ()
        """Rules whose findings nobody is notified of."""
        self._last_s: dict[tuple[str, int], float] = {}
        self._stopped = False

    def forget_nothing(self, judged: Sequence[Judged]) -> None:
        """Take over from an earlier process: what was found then was acted upon then."""
        for one in judged:
            if one.episodes.findings:
                for number, action in enumerate(one.rule.actions):
                    if action.once:
                        self._last_s[one.rule.name, number] = self._clock()

    def perform(self, one: Judged, change: Change) -> None:
        """Do what the rule's actions say about a finding that is new or has become critical."""
        finding, news = change.finding, change.news
        if news in {News.LONGER, News.EXPLAINED}:
            return
        muted = one.rule.name in self.muted
        for number, action in enumerate(one.rule.actions):
            if muted and isinstance(action, Notify):
                continue
            if news is News.NEW or finding.severity is Severity.CRITICAL:
                self._perform(one, number, action, change)
        wanted = self._stop_on is not None and SEVERITIES.index(finding.severity) >= SEVERITIES.index(
            self._stop_on
        )
        if wanted and not self._stopped:
            self._stopped = True
            self._do(one, StopTraining(), change)

    def _perform(self, one: Judged, number: int, action: Action, change: Change) -> None:
        key = (one.rule.name, number)
        now_s = self._clock()
        last_s = self._last_s.get(key)
        if last_s is not None and (action.once or now_s - last_s < action.cooldown_s):
            return
        self._last_s[key] = now_s
        self._do(one, action, change)

    def _do(self, one: Judged, action: Action, change: Change) -> None:
        try:
            action.perform(change.finding, self._context)
        except Exception as error:
            name = type(action).__name__
            log.exception("%s of rule %s failed", name, one.rule.name)
            if len(one.notes) < _MAX_NOTES:
                one.notes.append(f"{name} failed: {error}")
