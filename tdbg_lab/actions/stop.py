"""Stop training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.actions.base import Action
from tdbg_lab.store import request

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["StopTraining"]


@dataclass(frozen=True, kw_only=True)
class StopTraining(Action):
    """Ask the training process to stop; it does at the end of the step it is in.

    A ``checkpoint`` given to `tdbg_lab.attach` is called first, with the finding.

    Attached to a rule, it stops at *any* finding of that rule: who attaches it has decided. The
    runner's own ``--stop-on`` stops at critical findings only.
    """

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Write a stop request into the run directory."""
        arguments = {"finding": finding.id} if finding.id else None
        by = f"rule {finding.rule}"
        request(context.run_path, "stop", reason=finding.message, by=by, arguments=arguments)
