"""One root cause, one finding: what follows from an open finding is told as its consequence."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from tdbg_lab.records import Severity
from tdbg_lab.rules.episode import SEVERITIES, Change, News

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.base import Rule
    from tdbg_lab.rules.judged import Judged

__all__ = ["Grouping", "relate_after"]

_LAG = 20
"""Checked steps that a consequence may have been told before its cause: causes often need more patience."""


class Grouping:
    """Relates findings of several rules, by what each rule says it explains.

    A finding whose rule is explained by that of an open one is a consequence: it names its cause and
    is no more than a notice. Its severity goes over to the cause when that was milder, so that nothing
    is played down. A consequence that was told shortly before its cause is related afterwards.
    """

    def __init__(self, judged: Sequence[Judged]) -> None:
        self._judged = judged
        self._steps: deque[int] = deque(maxlen=_LAG)

    def begin(self, step: int) -> None:
        """A step is about to be checked."""
        if not self._steps or step > self._steps[-1]:
            self._steps.append(step)

    def relate(self, one: Judged, change: Change) -> list[tuple[Judged, Change]]:
        """A change with what it does to the findings of other rules."""
        if change.finding.cause:
            return [(one, change), *self._lift(change.finding.cause, change.severity)]
        if change.news is not News.NEW:
            return [(one, change)]
        if (root := self._root_of(one)) is not None:
            return self._subordinate(one, root, change)
        changes = [(one, change)]
        for other in self._consequences(one, change.finding):
            found = other.episodes.active
            if found is not None:
                changes += self._subordinate(other, one, Change(found, News.EXPLAINED, found.severity))
        return changes

    def _root_of(self, one: Judged) -> Judged | None:
        """The rule whose open finding explains the trouble of another, or None."""
        return next(
            (
                other
                for other in self._judged
                if other is not one
                and (found := other.episodes.active) is not None
                and not found.cause
                and found.severity is not Severity.NOTICE
                and explains(other.rule, one.rule)
            ),
            None,
        )

    def _consequences(self, one: Judged, root: Finding) -> list[Judged]:
        if root.severity is Severity.NOTICE:
            return []
        earliest = min(root.step_first, self._steps[0] if self._steps else root.step_first)
        return [
            other
            for other in self._judged
            if other is not one
            and (found := other.episodes.active) is not None
            and not found.cause
            and found.step_first >= earliest
            and explains(one.rule, other.rule)
        ]

    def _subordinate(self, one: Judged, root: Judged, change: Change) -> list[tuple[Judged, Change]]:
        cause = root.episodes.active
        if cause is None:
            return [(one, change)]
        finding = one.episodes.follow_from(cause.id)
        return [(one, change._replace(finding=finding)), *self._lift(cause.id, change.severity)]

    def _lift(self, cause: str, severity: Severity) -> list[tuple[Judged, Change]]:
        """Make an open cause as severe as what follows from it."""
        for root in self._judged:
            found = root.episodes.active
            if found is not None and found.id == cause:
                if SEVERITIES.index(severity) <= SEVERITIES.index(found.severity):
                    return []
                return [(root, Change(root.episodes.raise_to(severity), News.WORSE, severity))]
        return []


def explains(cause: Rule, consequence: Rule) -> bool:
    """Whether troubles of one rule follow from those of another."""
    wanted = {"*", consequence.name, consequence.group}
    return cause.name != consequence.name and not wanted.isdisjoint(cause.explains)


def relate_after(findings: Sequence[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """Relate findings that were made apart from each other; earliest first.

    Parameters
    ----------
    findings
        Of one run.
    rules
        By name.
    """
    ordered = sorted(findings, key=lambda one: (one.step_first, one.time_ns))
    told: dict[str, Finding] = {one.id: one for one in ordered}
    for one in ordered:
        root = next((other for other in ordered if _is_cause(told[other.id], one, rules)), None)
        if root is None or told[one.id].cause:
            continue
        cause = told[root.id]
        worst = max(cause.severity, one.severity, key=SEVERITIES.index)
        told[root.id] = replace(cause, severity=worst)
        told[one.id] = replace(told[one.id], cause=cause.id, severity=Severity.NOTICE)
    return list(told.values())


def _is_cause(root: Finding, one: Finding, rules: Mapping[str, Rule]) -> bool:
    return (
        root.id != one.id
        and not root.cause
        and root.severity is not Severity.NOTICE
        and {root.rule, one.rule} <= rules.keys()
        and explains(rules[root.rule], rules[one.rule])
        and root.step_first - _LAG <= one.step_first <= root.step_last
    )
