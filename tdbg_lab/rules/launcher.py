"""Start the rule runner of a run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.actions import Action
from tdbg_lab.background import start_thread
from tdbg_lab.errors import ConfigError, StoreError
from tdbg_lab.rules.payload import pack
from tdbg_lab.rules.registry import resolve_rules
from tdbg_lab.store.findings import announce_runner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.rules.registry import Rules

__all__ = ["launch"]


def launch(
    run_path: str | Path,
    rules: Rules | None = "default",
    *,
    actions: Action | Sequence[Action] = (),
    stop_on: str | None = None,
    stands_in: bool = False,
) -> subprocess.Popen[bytes] | None:
    """Start ``python -m tdbg_lab.rules`` beside a run; it ends by itself when the run does.

    Parameters
    ----------
    run_path
        Run directory.
    rules
        As `tdbg_lab.rules.resolve_rules` takes them; None or ``"none"`` for none.
    actions
        For the findings of all rules, beside what each rule has.
    stop_on
        ``"critical"``: ask training to stop at findings of that severity, whatever the rule.
    stands_in
        Whether it leaves when another runner looks after the run, such as the training's own.

    Returns
    -------
    Popen or None
        The process, in a session of its own; None when there is nothing to run.

    Raises
    ------
    NotFoundError
        If there is no rule of a name.
    ConfigError
        If a rule or an action cannot be sent to the runner.
    OSError
        If no process can be started.
    """
    made = resolve_rules(rules)
    if not made:
        return None
    data = pack(made, check_actions(actions))
    command = [sys.executable, "-m", "tdbg_lab.rules", str(run_path), "--rules", "none", "--custom-stdin"]
    if stop_on is not None:
        command += ["--stop-on", stop_on]
    if stands_in:
        command.append("--stand-in")
    with contextlib.suppress(StoreError):  # what the runner cannot write either, it says itself
        announce_runner(run_path)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=_environment(),
    )
    send = partial(_send, process, data)
    # The child reads once Python is up: training waits for that only where no thread can.
    if start_thread(send, "tdbg-rules-launch") is None:
        send()
    return process


def check_actions(given: Any) -> tuple[Action, ...]:
    """Actions as a tuple, checked.

    Raises
    ------
    ConfigError
        If one of them is none.
    """
    found = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    for one in found:
        if not isinstance(one, Action):
            what = one.__name__ if isinstance(one, type) else type(one).__name__
            raise ConfigError(f"actions holds {what}; expected actions, such as StopTraining().")
    return found


def _environment() -> dict[str, str]:
    """The environment, with this package importable: it may stand on a path set by hand."""
    root = str(Path(__file__).parents[2])
    old = os.environ.get("PYTHONPATH", "")
    paths = [root, *(one for one in old.split(os.pathsep) if one and one != root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    with contextlib.suppress(OSError, ValueError):  # it ended at once: its status says why
        pipe.write(data)
        pipe.close()
