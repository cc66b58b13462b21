"""What rules do when they have found something."""

from __future__ import annotations

from tdbg_lab.smdebug.rules.action.action import SMS, ActionList, Actions, Email, StopTraining
from tdbg_lab.smdebug.rules.action.message_action import MessageAction
from tdbg_lab.smdebug.rules.action.stop_training_action import StopTrainingAction

__all__ = [
    "SMS",
    "ActionList",
    "Actions",
    "Email",
    "MessageAction",
    "StopTraining",
    "StopTrainingAction",
]
