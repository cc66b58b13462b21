"""What rules are called and where they stand, in the same words in every view and table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import find_rule

if TYPE_CHECKING:
    from tdbg_lab.records import RuleState

__all__ = ["STATUS_WORDS", "rule_progress", "rule_title"]

STATUS_WORDS = {
    RuleStatus.IN_PROGRESS: "checking, nothing found",
    RuleStatus.NO_ISSUE: "no issue",
    RuleStatus.ISSUE_FOUND: "issue found",
    RuleStatus.ERROR: "the rule failed",
    RuleStatus.STOPPED: "stopped",
    RuleStatus.NOT_APPLICABLE: "not applicable",
}


def rule_title(name: str) -> str:
    """Title of a rule; its name in words where it is a user's own that is not loaded here."""
    try:
        return find_rule(name).title
    except NotFoundError:
        return name.replace("_", " ").capitalize()


def rule_progress(state: RuleState) -> str:
    """How far a rule has come, and what that has cost."""
    if state.step_checked < 0:
        return "has checked no step"
    return f"checked to step {state.step_checked:,} in {state.cost_ms:,.0f} ms"
