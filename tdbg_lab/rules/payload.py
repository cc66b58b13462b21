"""Rules and actions on their way from the process that made them to the rule runner.

They travel through the runner's standard input, from a parent to its own child, and through nothing
else: never through files, never through a run directory. Classes and functions of ``__main__`` (a
script, a notebook cell) travel by value.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING

from tdbg_lab.actions import Action
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleState, RuleStatus
from tdbg_lab.rules.base import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pack", "unpack"]

MAX_BYTES = 256 * 2**20


def pack(rules: Sequence[Rule], actions: Sequence[Action] = ()) -> bytes:
    """Pickle rules, and actions for all of them, one by one, with the module search path they need.

    Raises
    ------
    ConfigError
        If one of them cannot be pickled.
    """
    import cloudpickle

    packed: list[tuple[str, bytes]] = []
    for rule in rules:
        try:
            packed.append((rule.name, cloudpickle.dumps(rule)))
        except Exception as error:
            raise ConfigError(f"Rule {rule.name} cannot be sent to the rule runner: {error}") from error
    done: list[bytes] = []
    for action in actions:
        try:
            done.append(cloudpickle.dumps(action))
        except Exception as error:
            name = type(action).__name__
            raise ConfigError(f"Action {name} cannot be sent to the rule runner: {error}") from error
    return pickle.dumps((list(sys.path), packed, done))


def unpack(data: bytes) -> tuple[list[Rule], list[RuleState], list[Action]]:
    """The rules, a state for each that could not be made here, and the actions for all rules.

    Only for what our own parent sent.
    """
    path, packed, actions = pickle.loads(data)  # noqa: S301 - from our own parent
    sys.path.extend(entry for entry in path if entry not in sys.path)
    rules: list[Rule] = []
    broken: list[RuleState] = []
    for name, one in packed:
        try:
            rule = pickle.loads(one)  # noqa: S301 - from our own parent
            if not isinstance(rule, Rule):
                raise ConfigError(f"{name} is not a Rule.")  # noqa: TRY301 - the content is wrong
            rules.append(rule)
        except Exception as error:  # noqa: BLE001 - whatever the user's class does
            broken.append(RuleState(name, RuleStatus.ERROR, reason=f"{type(error).__name__}: {error}"))
    made: list[Action] = []
    for one in actions:
        try:
            action = pickle.loads(one)  # noqa: S301 - from our own parent
            if not isinstance(action, Action):
                raise ConfigError("It is not an Action.")  # noqa: TRY301 - the content is wrong
            made.append(action)
        except Exception as error:  # noqa: BLE001 - whatever the user's class does
            broken.append(RuleState("actions", RuleStatus.ERROR, reason=f"{type(error).__name__}: {error}"))
    return rules, broken, made
