"""Run what the user wrote: a Python function, a shell command."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable  # noqa: TC003 - a field's type, read by tools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.actions.base import Action
from tdbg_lab.actions.message import body_of
from tdbg_lab.errors import ConfigError, TdbgError
from tdbg_lab.store.jsonable import jsonable

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["CommandError", "RunCallable", "RunCommand"]


class CommandError(TdbgError, RuntimeError):
    """A command of the user failed or took too long."""


@dataclass(frozen=True, kw_only=True)
class RunCallable(Action):
    """Call ``function(finding, context)`` in the rule runner's process.

    A function of a notebook cell or of the script itself travels there by value: it sees its own
    copy of what it refers to, not the variables of the training process.
    """

    function: Callable[[Finding, ActionContext], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise ConfigError(
                f"function of RunCallable is a {type(self.function).__name__}; expected a function."
            )

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Call the function; its result is not used."""
        self.function(finding, context)


@dataclass(frozen=True, kw_only=True)
class RunCommand(Action):
    """Run a shell command.

    The command gets the finding through its environment, never through the command line:
    ``TDBG_RULE``, ``TDBG_SEVERITY``, ``TDBG_TENSOR``, ``TDBG_STEP``, ``TDBG_MESSAGE``, ``TDBG_RUN``,
    ``TDBG_EVIDENCE`` (JSON); the full text stands on its standard input. Quote them: what a run
    directory holds is not to be trusted.
    """

    command: str
    timeout_s: float = 30.0
    """After this time the command and what it started is ended and counts as failed, s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        command: object = self.command
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            raise ConfigError(
                f"command of RunCommand is {str(command)[:80]!r}; expected a line for the shell."
            )

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Run it and wait; raises `CommandError` with the end of its output when it fails."""
        facts = {
            "TDBG_RULE": finding.rule,
            "TDBG_SEVERITY": str(finding.severity),
            "TDBG_TENSOR": finding.tensor,
            "TDBG_STEP": str(finding.step_last),
            "TDBG_MESSAGE": finding.message,
            "TDBG_RUN": str(context.run_path),
            "TDBG_EVIDENCE": json.dumps(jsonable(finding.evidence), allow_nan=False),
        }
        process = subprocess.Popen(  # noqa: S602 - the user's own command, from the user's own process
            self.command,
            shell=True,
            env=os.environ | {key: value.replace("\0", "") for key, value in facts.items()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # to end what it started, too
        )
        try:
            output, _ = process.communicate(body_of(finding, context).encode(), timeout=self.timeout_s)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise CommandError(f"The command took longer than {self.timeout_s:g} s.") from error
        if process.returncode != 0:
            tail = output[-400:].decode(errors="replace").strip()
            raise CommandError(f"The command ended with {process.returncode}: {tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and its children."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    else:  # Windows has no such groups
        _end_children(process.pid)
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # something that left the group may hold the pipe
        process.communicate(timeout=1.0)


def _end_children(pid: int) -> None:
    """Kill what a process started, as far as it can still be told."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
