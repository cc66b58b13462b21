"""What an action is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - a field's type, read by tools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.records import Finding

__all__ = ["Action", "ActionContext"]


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Where a finding was made."""

    run_path: Path
    """Run directory."""
    run_name: str = ""
    run_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Action:
    """Something done about a finding, in the rule runner's process.

    Subclasses implement `perform`. What it raises is recorded in the state of the rule and goes no
    further: neither training nor other actions notice.
    """

    once: bool = True
    """Once a run; False: at each new finding of the rule, and when one becomes critical."""
    cooldown_s: float = 60.0
    """Least time between two performances, s. Findings in between are passed over."""

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Do it.

        Parameters
        ----------
        finding
            What was found.
        context
            In which run.
        """
        raise NotImplementedError
