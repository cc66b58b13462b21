"""From answers step by step to findings: the same trouble is one finding."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.errors import ConflictError
from tdbg_lab.records import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.records import Finding

__all__ = ["MOST", "SEVERITIES", "Change", "Episodes", "News"]

SEVERITIES = (Severity.NOTICE, Severity.WARNING, Severity.CRITICAL)
"""Mildest first."""
MOST = 256
"""Findings of one rule. One that comes and goes for days must not crowd out those of others."""


class News(Enum):
    """What became of a finding."""

    NEW = "new"
    WORSE = "worse"
    """More severe than before."""
    LONGER = "longer"
    EXPLAINED = "explained"
    """It turned out to follow from another finding."""


class Change(NamedTuple):
    """A finding as it is now."""

    finding: Finding
    news: News
    severity: Severity
    """What the rule itself thinks of it: a finding that follows from another is told as a notice."""


class Episodes:
    """Findings of one rule.

    Answers about a trouble that is open extend its finding; it closes after `calm` checked steps
    without one. What comes after that is another finding, up to `MOST` of them: then the last one goes on.

    Parameters
    ----------
    known
        Findings from an earlier process, so that nothing is told twice.
    calm
        Checked steps in a row without an answer.
    confirm
        Checked steps in a row with an answer that it takes to make a finding.
    """

    def __init__(self, known: Sequence[Finding] = (), *, calm: int = 5, confirm: int = 1) -> None:
        self._findings = {finding.id: finding for finding in known}
        self._calm = calm
        self.confirm = confirm
        """Answers in a row that make a finding."""
        self._doubted: dict[int, Finding] = {}
        """Answers in a row that are not yet a finding, by step."""
        self._quiet_steps: set[int] = set()
        self.active: Finding | None = None
        """The open finding, or None."""

    @property
    def findings(self) -> list[Finding]:
        """All findings so far, in the order they were made."""
        return list(self._findings.values())

    @property
    def doubted_since(self) -> int | None:
        """First of the answers in a row that are not yet a finding, or None."""
        return next(iter(self._doubted), None)

    def take(self, step: int, answer: Finding | None, *, sure: bool = False) -> Change | None:
        """Take the answer of the rule at a step; what changed, or None.

        `sure` needs no confirmation.
        """
        if self.active is None and self._findings:
            self._reopen(step)
        if answer is None:
            self._doubted.clear()
            if self.active is not None:
                self._be_quiet(step, self.active)
            return None
        self._quiet_steps.clear()
        if self.active is None and not sure:
            answer = self._confirmed(step, answer)
            if answer is None:
                return None
        if self.active is None:
            self._doubted.clear()
            if len(self._findings) >= MOST and (last := self._last_of_its_own()) is not None:
                self.active = last
                return self._extend(last, answer)
            found = replace(answer, id=_identity(answer), time_ns=answer.time_ns or time.time_ns())
            self.active = self._findings[found.id] = found
            return Change(found, News.NEW, answer.severity)
        return self._extend(self.active, answer)

    def follow_from(self, cause: str) -> Finding:
        """Make the open finding a consequence of another one, known by its id."""
        return self._change(cause=cause, severity=Severity.NOTICE)

    def raise_to(self, severity: Severity) -> Finding:
        """Make the open finding as severe as one of its consequences is."""
        return self._change(severity=severity)

    def _change(self, **changes: Any) -> Finding:
        if self.active is None:
            raise ConflictError("There is no open finding to change.")
        self.active = self._findings[self.active.id] = replace(self.active, **changes)
        return self.active

    def _last_of_its_own(self) -> Finding | None:
        """The last finding that follows from no other, whose severity is the rule's own."""
        return next((one for one in reversed(self._findings.values()) if not one.cause), None)

    def _extend(self, old: Finding, answer: Finding) -> Change | None:
        worse = not old.cause and SEVERITIES.index(answer.severity) > SEVERITIES.index(old.severity)
        if answer.step_last <= old.step_last and not worse:
            return None
        # The first to be named is where it began, unless there was no trouble with it.
        graver = worse and old.severity is Severity.NOTICE
        told = answer if graver or answer.tensor == old.tensor else old
        new = replace(
            told,
            step_first=min(old.step_first, answer.step_first),
            step_last=max(old.step_last, answer.step_last),
            severity=answer.severity if worse else old.severity,
            id=old.id,
            time_ns=old.time_ns,
            cause=old.cause,
        )
        self.active = self._findings[new.id] = new
        return Change(new, News.WORSE if worse else News.LONGER, answer.severity)

    def _confirmed(self, step: int, answer: Finding) -> Finding | None:
        """The answer with the first step of those that led to it; None while it is in doubt."""
        self._doubted[step] = answer
        if len(self._doubted) < self.confirm:
            return None
        return replace(answer, step_first=min(one.step_first for one in self._doubted.values()))

    def _be_quiet(self, step: int, active: Finding) -> None:
        if step <= active.step_last:
            return
        self._quiet_steps.add(step)
        if len(self._quiet_steps) >= self._calm:
            self.active = None
            self._quiet_steps.clear()

    def _reopen(self, step: int) -> None:
        """Take up a finding of an earlier process where it was left."""
        for finding in self._findings.values():
            if finding.step_first <= step <= finding.step_last:
                self.active = finding
                self._quiet_steps.clear()


def _identity(finding: Finding) -> str:
    text = f"{finding.rule}\0{finding.tensor}\0{finding.step_first}\0{finding.rank}"
    return f"{finding.rule}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
