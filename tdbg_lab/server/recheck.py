"""Check a recorded run once more with one rule and other thresholds.

`changed_rule` and `check_again` are the work, `Rechecks` is the server's end of it. The work is done in a
worker process: nothing is written into the run directory, and no action is performed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.server.jsonable import jsonable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tdbg_lab.rules.base import Rule
    from tdbg_lab.server.asked import AskedJobs
    from tdbg_lab.server.wire import AskedJson

__all__ = ["MAX_FINDINGS", "RecheckTask", "Rechecks", "changed_rule", "check_again"]

MAX_FINDINGS = 200
"""Findings answered, the first ones; `found` counts them all."""


def changed_rule(name: str, parameters: Mapping[str, Any]) -> Rule:
    """A rule of our own or of an installed package, with other thresholds.

    Parameters
    ----------
    parameters
        Thresholds by name: numbers, texts, booleans or None, as JSON has them.

    Raises
    ------
    NotFoundError
        When the server knows no rule of that name: those of a notebook cell live in its kernel only.
    ConfigError
        When a threshold does not exist, or its value does not fit.
    """
    from tdbg_lab.rules.registry import find_rule, resolve_rules

    try:
        find_rule(name)
    except NotFoundError:
        raise NotFoundError(
            f"The server has no rule {name!r}: rules of a notebook or script can be run again only there, "
            "with tdbg.run_rules(run, [rule])."
        ) from None
    # As text, so that what is read is decided by the type of the threshold and not by JSON's.
    (rule,) = resolve_rules([name], {name: {key: _as_text(value) for key, value in parameters.items()}})
    return rule


def check_again(
    path: str,
    name: str,
    parameters: Mapping[str, Any],
    last_step: int,
    *,
    progress: Callable[[float, str], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any]:
    """Check all that was recorded. Runs in a worker.

    Parameters
    ----------
    last_step
        Where the run stands: the end of the scale of progress.

    Returns
    -------
    dict
        JSON: ``state`` and ``findings`` (at most `MAX_FINDINGS`), and how many were ``found``.

    Raises
    ------
    Cancelled
        When ``cancelled()`` answers True.
    """
    from tdbg_lab.rules.checking import check_run
    from tdbg_lab.views import Cancelled

    def on_step(step: int) -> None:
        if cancelled():
            raise Cancelled
        progress(min((step + 1) / (last_step + 1), 1.0), f"Checked to step {step:,}")

    findings, states = check_run(path, [changed_rule(name, parameters)], on_step=on_step)
    return {
        "state": jsonable(states[0]),
        "findings": jsonable(findings[:MAX_FINDINGS]),
        "found": len(findings),
    }


@dataclass(frozen=True, slots=True)
class RecheckTask:
    """What a worker is to check."""

    path: Path
    rule: str
    parameters: Mapping[str, Any]
    last_step: int

    @property
    def title(self) -> str:
        """What it is, for the log."""
        return f"The check with rule {self.rule}"

    def request(self) -> dict[str, Any]:
        """What the worker is told."""
        return {
            "path": str(self.path),
            "rule": self.rule,
            "parameters": dict(self.parameters),
            "last_step": self.last_step,
        }


class Rechecks:
    """Checks that were asked for."""

    def __init__(self, asked: AskedJobs) -> None:
        self._asked = asked

    def start(self, run_id: str, task: RecheckTask) -> AskedJson:
        """Start a check, or join the same one under way.

        Raises
        ------
        ConflictError
            When too many are under way.
        """
        thresholds = tuple(sorted((key, repr(value)) for key, value in task.parameters.items()))
        return self._asked.start(("recheck", run_id, task.rule, thresholds), task)


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, str)):
        return str(value)
    raise ConfigError(
        f"A threshold is a {type(value).__name__}; expected a number, a text, a boolean or null."
    )
