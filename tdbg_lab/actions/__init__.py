"""What may be done about a finding: stop training, change a setting, tell people, run the user's own code."""

from __future__ import annotations

from tdbg_lab.actions.base import Action, ActionContext, Message
from tdbg_lab.actions.call import CommandError, RunCallable, RunCommand
from tdbg_lab.actions.email import Email
from tdbg_lab.actions.notify import Notify, NotifyError
from tdbg_lab.actions.pattern import Pattern
from tdbg_lab.actions.setting import ApplyFix, ChangeSetting, apply_fix
from tdbg_lab.actions.stop import StopTraining
from tdbg_lab.actions.webhook import Webhook

__all__ = [
    "Action",
    "ActionContext",
    "ApplyFix",
    "ChangeSetting",
    "CommandError",
    "Email",
    "Message",
    "Notify",
    "NotifyError",
    "Pattern",
    "RunCallable",
    "RunCommand",
    "StopTraining",
    "Webhook",
    "apply_fix",
]
