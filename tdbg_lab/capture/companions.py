"""Starts the processes that accompany a run: the rule runner and the system sampler.

Nothing here blocks the start of training, and nothing here is needed for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tdbg_lab.background import start_thread
from tdbg_lab.capture.keeping import keep
from tdbg_lab.errors import TdbgError

__all__ = ["check_rules", "environment", "start_digest", "start_rules", "start_sampler"]

_ALWAYS_THERE = (None, "default", "none")


def start_sampler(run_path: Path, *, rank: int = 0, interval_s: float = 0.5) -> None:
    """Start the system sampler for this process; it ends by itself."""
    where = [str(run_path), "--pid", str(os.getpid()), "--rank", str(rank)]
    keep(
        lambda: _start("tdbg_lab.profiler", *where, "--interval", str(interval_s)),
        "sampler",
        goes_on=lambda: _goes_on(run_path),
    )


def start_digest(folder: Path) -> None:
    """Start what makes the figures' data of a profile that was just written; it ends by itself."""
    process = _start("tdbg_lab.profiler.digest", str(folder))
    start_thread(process.wait, "tdbg-lab digest")  # no zombie is left


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

    keep(
        lambda: launch(run_path, rules=rules, actions=actions),
        "rule runner",
        goes_on=lambda: _goes_on(run_path),
    )


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
