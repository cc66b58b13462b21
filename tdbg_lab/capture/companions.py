"""Starts the processes that accompany a run: the rule runner and the system sampler.

Nothing here blocks the start of training, and nothing here is needed for it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import TdbgError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["START_AGAIN_S", "check_rules", "environment", "start_digest", "start_rules", "start_sampler"]

_log = logging.getLogger("tdbg_lab")

START_AGAIN_S = (2.0, 10.0, 60.0, 300.0)
"""Pauses before a process that was killed is started anew: memory may be short for longer."""
_ALWAYS_THERE = (None, "default", "none")


def start_sampler(run_path: Path, *, rank: int = 0, interval_s: float = 0.5) -> None:
    """Start the system sampler for this process; it ends by itself."""
    where = [str(run_path), "--pid", str(os.getpid()), "--rank", str(rank)]
    _keep(lambda: _start("tdbg_lab.profiler", *where, "--interval", str(interval_s)), "sampler", run_path)


def start_digest(folder: Path) -> None:
    """Start what makes the figures' data of a profile that was just written; it ends by itself."""
    process = _start("tdbg_lab.profiler.digest", str(folder))
    threading.Thread(target=process.wait, name="tdbg-lab digest", daemon=True).start()  # no zombie is left


def _start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment(),
    )


def check_rules(rules: Any) -> None:
    """Say it before training begins when rules are asked for that do not exist.

    What else keeps them from running is for `start_rules` to find.

    Raises
    ------
    NotFoundError
        If there is no rule of a name.
    ConfigError
        If they cannot be read, or are given what they do not have.
    """
    if isinstance(rules, str | None) and rules in _ALWAYS_THERE:
        return
    try:
        from tdbg_lab.rules import resolve_rules

        resolve_rules(rules)
    except TdbgError:
        raise
    except Exception:  # noqa: BLE001 - a rule of the user's own: training goes on without it
        return


def start_rules(run_path: Path, rules: Any, actions: Any = ()) -> None:
    """Start the rule runner on the run."""
    from tdbg_lab.rules import launch

    _keep(lambda: launch(run_path, rules=rules, actions=actions), "rule runner", run_path)


def _keep(start: Callable[[], subprocess.Popen[bytes] | None], name: str, run_path: Path) -> None:
    """Start a process, and again where it is killed while the run goes on; it takes up where it was."""
    process = start()

    def keep(process: subprocess.Popen[bytes] | None) -> None:
        for wait_s in START_AGAIN_S:
            if process is None or process.wait() >= 0 or not _goes_on(run_path):
                return
            _log.warning("tdbg-lab: the %s was killed; it is started again.", name)
            time.sleep(wait_s)
            try:
                process = start()
            except (TdbgError, OSError) as error:
                _log.warning("tdbg-lab: the %s cannot be started again: %s", name, error)
                return
        if process is not None and process.wait() < 0 and _goes_on(run_path):
            _log.warning("tdbg-lab: the %s was killed again and again; it is left at that.", name)

    if process is not None:
        threading.Thread(target=keep, args=[process], name=f"tdbg-lab {name}", daemon=True).start()


def _goes_on(run_path: Path) -> bool:
    from tdbg_lab.store.info import read_info  # which brings Arrow along: not before a program has begun

    try:
        return read_info(run_path).ended_ns is None
    except (OSError, ValueError):
        return False


def environment() -> dict[str, str]:
    """The environment, with this package importable: it may stand on a path set by hand."""
    root = str(Path(__file__).parents[2])
    old = os.environ.get("PYTHONPATH", "")
    paths = [root, *(one for one in old.split(os.pathsep) if one and one != root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
