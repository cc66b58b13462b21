"""The actions of a rule: said as JSON, or as objects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.rules.action.message_action import MessageAction
from tdbg_lab.smdebug.rules.action.stop_training_action import StopTrainingAction

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SMS", "ActionList", "Actions", "Email", "StopTraining"]

ALLOWED_ACTIONS = ["stoptraining", "sms", "email"]


class _Action(Protocol):
    def invoke(self, message: str, *, step: int = -1) -> None:
        """Do it."""


@dataclass(frozen=True)
class StopTraining:
    """Stop the training that the rule looks at."""

    def serialize(self) -> dict[str, str]:
        """As JSON-able data."""
        return {"name": "stoptraining"}


@dataclass(frozen=True)
class Email:
    """Send an e-mail."""

    endpoint: str
    """Address, or an Apprise URL; see `MessageAction`."""

    def serialize(self) -> dict[str, str]:
        """As JSON-able data."""
        return {"name": "email", "endpoint": self.endpoint}


@dataclass(frozen=True)
class SMS:
    """Send a text message."""

    endpoint: str
    """Number, or an Apprise URL; see `MessageAction`."""

    def serialize(self) -> dict[str, str]:
        """As JSON-able data."""
        return {"name": "sms", "endpoint": self.endpoint}


class ActionList:
    """Several actions."""

    def __init__(self, *actions: StopTraining | Email | SMS) -> None:
        self.actions = actions

    def serialize(self) -> list[dict[str, str]]:
        """As JSON-able data."""
        return [one.serialize() for one in self.actions]


class Actions:
    """What a rule does when it has found something.

    Parameters
    ----------
    actions_str
        JSON of one action or a list of them, or `StopTraining`, `Email`, `SMS`, `ActionList`.
        Letters keep their case.
    rule_name
        Who does it.
    run_path
        Where the run stands.

    Raises
    ------
    SMDebugValueError
        If it is no JSON, or an action is not known.
    """

    def __init__(self, actions_str: Any = "", rule_name: str = "", run_path: str = "") -> None:
        self.rule_name = rule_name
        self.actions: list[_Action] = [self._made(one, run_path) for one in _listed(actions_str)]

    def _made(self, said: Any, run_path: str) -> _Action:
        name = str(said.get("name", "")).lower() if isinstance(said, dict) else ""
        if name not in ALLOWED_ACTIONS:
            raise SMDebugValueError(
                f"{said!r:.80} is no action: its name must be one of {', '.join(ALLOWED_ACTIONS)}."
            )
        if name == "stoptraining":
            return StopTrainingAction(self.rule_name, run_path)
        return MessageAction(self.rule_name, name, str(said.get("endpoint", "")), run_path)

    def invoke(self, message: str = "", *, step: int = -1) -> None:
        """Do all of them; one that fails is logged and does not keep others from being done."""
        for one in self.actions:
            try:
                one.invoke(message, step=step)
            except Exception as error:  # noqa: BLE001 - what others wrote: a server, a gateway
                get_logger().warning("An action of rule %s failed: %s", self.rule_name, error)


def _listed(actions: Any) -> Sequence[Any]:
    if not actions:
        return []
    if hasattr(actions, "serialize"):
        actions = actions.serialize()
    elif isinstance(actions, str):
        try:
            actions = json.loads(actions)
        except ValueError as error:
            raise SMDebugValueError(
                f"action_str {actions!r:.80} is no JSON ({error}); "
                'expected such as {"name": "stoptraining"}.'
            ) from None
    return actions if isinstance(actions, list) else [actions]
