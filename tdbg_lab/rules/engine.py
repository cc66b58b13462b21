"""Ask rules about steps, one after the other; keep what they found and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, RuleState, RuleStatus
from tdbg_lab.rules.asking import Question
from tdbg_lab.rules.base import Rule
from tdbg_lab.rules.episode import Change, Episodes
from tdbg_lab.rules.grouping import Grouping
from tdbg_lab.rules.judged import Judged
from tdbg_lab.rules.kinds import NOTHING, Kinds
from tdbg_lab.rules.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tdbg_lab.rules.base import Needs
    from tdbg_lab.rules.view import RunView

__all__ = ["Engine", "Judged"]


class Engine:
    """Rules over one run. A rule that raises or hangs is out from then on; the others go on.

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
            one = Judged(rule, Episodes(own, calm=rule.calm), resume_step=resume)
            if not one.is_classic:
                one.episodes.confirm = rule.confirmations
            self.judged.append(one)
        self._grouping = Grouping(self.judged)
        self._watchdog = Watchdog()
        self._ended: RuleStatus | None = None

    @property
    def needs(self) -> list[Needs]:
        """What the rules read."""
        return [one.needs for one in self.judged]

    @property
    def doubted_since(self) -> dict[str, int]:
        """First of the answers of each rule that are not yet a finding."""
        since = {one.rule.name: one.episodes.doubted_since for one in self.judged}
        return {rule: step for rule, step in since.items() if step is not None}

    @property
    def findings(self) -> list[Finding]:
        """Findings of all rules, earliest first."""
        found = [finding for one in self.judged for finding in one.episodes.findings]
        return sorted(found, key=lambda finding: (finding.step_first, finding.time_ns))

    def check(self, step: int, view: RunView, *, strict: bool = False) -> list[tuple[Judged, Change]]:
        """Ask every rule about a step that `view` ends with; what is new or has changed.

        With `strict`, the rules are asked in this thread, for as long as it takes, and what one raises
        is raised here.
        """
        self._grouping.begin(step)
        kinds = view.kinds
        asked = []
        for one in self.judged:
            if one.error and strict:
                raise ConfigError(one.error)
            if one.error:
                continue
            if step < one.resume_step:
                one.look(kinds)
            else:
                asked.append(one)
        return self._ask(asked, view, kinds=kinds, strict=strict)

    def idle(self, quiet_s: float, view: RunView) -> list[tuple[Judged, Change]]:
        """Ask every rule about a run that has not written for `quiet_s` seconds."""
        asked = [one for one in self.judged if not one.error and type(one.rule).idle is not Rule.idle]
        return self._ask(asked, view, quiet_s=quiet_s) if asked else []

    def _ask(
        self,
        asked: Sequence[Judged],
        view: RunView,
        *,
        kinds: Kinds = NOTHING,
        quiet_s: float | None = None,
        strict: bool = False,
    ) -> list[tuple[Judged, Change]]:
        changes: list[tuple[Judged, Change]] = []

        def take(one: Judged, change: Change | None) -> None:
            if change is not None:
                changes.extend(self._grouping.relate(one, change))
            view.open = self._open()

        view.open = self._open()
        questions = [Question(one, view, take, kinds=kinds, quiet_s=quiet_s) for one in asked]
        if strict:
            with np.errstate(all="ignore"):
                for question in questions:
                    question.done(question.work())
        else:
            self._watchdog.run(questions)
        return changes

    def _open(self) -> tuple[Finding, ...]:
        """Findings that are open now, of all rules."""
        return tuple(active for one in self.judged if (active := one.episodes.active) is not None)

    def end(self, *, stopped: bool = False) -> None:
        """No more steps will come; `stopped` when that was somebody's wish."""
        self._ended = RuleStatus.STOPPED if stopped else RuleStatus.NO_ISSUE
        self._watchdog.close()

    def states(self) -> list[RuleState]:
        """Where each rule stands."""
        return [one.state(self._ended) for one in self.judged]
