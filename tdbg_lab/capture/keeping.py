"""A process beside a training that is started again where it is killed or fails: memory may be short."""

from __future__ import annotations

import logging
import subprocess
import time
from typing import TYPE_CHECKING

from tdbg_lab.background import start_thread
from tdbg_lab.errors import TdbgError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["START_AGAIN_S", "keep"]

_log = logging.getLogger("tdbg_lab")

START_AGAIN_S = (2.0, 10.0, 60.0, 300.0)
"""Pauses before the process is started anew: memory may be short for longer."""
_AS_MEANT = (0, 2)
"""Exit codes of a process that has no more to do: the run has ended, or what it was given is wrong."""


def keep(
    start: Callable[[], subprocess.Popen[bytes] | None],
    name: str,
    *,
    goes_on: Callable[[], bool],
    wait: Callable[[subprocess.Popen[bytes]], object] = subprocess.Popen.wait,
    otherwise: str = "",
) -> None:
    """Start a process, and a few times again where it is killed or fails while the run goes on.

    Parameters
    ----------
    start
        Starts it, and raises where it cannot; None where there is nothing to start.
    name
        What it is, for the log.
    goes_on
        Whether the run does: else it is left as it ended.
    wait
        Waits for its end, in a thread of its own.
    otherwise
        A sentence that says what becomes of the run without it.
    """
    process = start()

    def follow(process: subprocess.Popen[bytes] | None) -> None:
        for pause_s in (*START_AGAIN_S, None):
            if process is None:
                return
            wait(process)
            if process.returncode in _AS_MEANT or not goes_on():
                return
            if pause_s is None:
                _log.warning(
                    "tdbg-lab: the %s ended too early again and again; it is left at that.%s", name, otherwise
                )
                return
            how = "was killed" if process.returncode < 0 else "failed"
            _log.warning("tdbg-lab: the %s %s; it is started again.", name, how)
            time.sleep(pause_s)
            try:
                process = start()
            except (TdbgError, OSError) as error:
                _log.warning("tdbg-lab: the %s cannot be started again: %s.%s", name, _why(error), otherwise)
                return

    if process is not None:
        start_thread(lambda: follow(process), f"tdbg-lab {name}")


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")
