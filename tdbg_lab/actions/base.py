"""What an action is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - a field's type, read by tools
from typing import TYPE_CHECKING

from tdbg_lab.actions.pattern import Pattern
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from tdbg_lab.records import Finding

__all__ = ["Action", "ActionContext", "Message"]


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

    Each action has a thread of its own there. What it raises, and that it takes too long, is told
    beside the findings and goes no further: neither training, nor rules, nor other actions notice.

    Raises
    ------
    ConfigError
        A setting is wrong.
    """

    once: bool = True
    """Once a run, tried again a few times where it raised; False: at each new finding, and when one becomes
    critical."""
    cooldown_s: float = 60.0
    """Least time between two performances, s. Findings in between are passed over."""
    when: Pattern | None = None
    """Which findings it is for; None: any of its rule, or of all rules where it was given to `attach`."""
    timeout_s: float = 60.0
    """After this time it counts as hanging and is not asked again, s."""

    def __post_init__(self) -> None:
        for name, least in (("cooldown_s", 0.0), ("timeout_s", 0.01)):
            value: object = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not number or float(value) < least:  # type: ignore[arg-type]
                raise ConfigError(
                    f"{name} of {type(self).__name__} is {value!r}; expected seconds, at least {least:g}."
                )
        when: object = self.when
        if when is not None and not isinstance(when, Pattern):
            raise ConfigError(
                f"when of {type(self).__name__} is a {type(when).__name__}; expected a Pattern, such as "
                "Pattern(severity='critical')."
            )

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


@dataclass(frozen=True, kw_only=True)
class Message(Action):
    """An action that tells people. It is left out for rules that somebody has muted."""
