"""What may be done about a finding: stop training, tell people, run the user's own code."""

from __future__ import annotations

from tdbg_lab.actions.base import Action, ActionContext
from tdbg_lab.actions.call import CommandError, RunCallable, RunCommand
from tdbg_lab.actions.notify import Notify, NotifyError
from tdbg_lab.actions.stop import StopTraining

__all__ = [
    "Action",
    "ActionContext",
    "CommandError",
    "Notify",
    "NotifyError",
    "RunCallable",
    "RunCommand",
    "StopTraining",
]
