"""When the work of a process that accompanies a run is over."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Lifetime", "find_process", "is_alive"]

_MAX_RUN_JSON_BYTES = 16 * 2**20


def find_process(pid: int) -> psutil.Process | None:
    """Find a live process by number, or None; the result knows its creation time."""
    try:
        return psutil.Process(pid)
    except (psutil.Error, ValueError):
        return None


def is_alive(process: psutil.Process) -> bool:
    """Whether a process is this one still and goes on; one that has ended and was not waited for does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class Lifetime:
    """Tells why to end: the training process is gone, the run has ended or was deleted.

    A process is known by its number *and* its creation time, so that a number that was given to
    another process does not keep us alive. A hung trainer is alive. Without `watch_process` only the
    run directory tells: the process is on another machine.
    """

    def __init__(self, run_path: Path, process: psutil.Process | None, *, watch_process: bool = True) -> None:
        self._file = run_path / "run.json"
        self._process = process
        self._watch_process = watch_process
        self._seen: tuple[int, int, int] | None = None
        self._ended = False

    def over(self) -> str | None:
        """Why to end, or None to go on. Costs a few file system calls."""
        try:
            found = os.stat(self._file)  # noqa: PTH116 - called twice a second for days
        except OSError:
            return "the run directory is gone"
        state = (found.st_mtime_ns, found.st_ino, found.st_size)
        if state != self._seen:
            self._seen = state
            self._ended = self._read_ended()
        if self._ended:
            return "the run has ended"
        return None if self._process_lives() else "the training process is gone"

    def _read_ended(self) -> bool:
        try:
            with self._file.open("rb") as file:
                info = json.loads(file.read(_MAX_RUN_JSON_BYTES))
        except (OSError, ValueError):
            return False
        return isinstance(info, dict) and (
            info.get("ended_ns") is not None or info.get("status", "running") != "running"
        )

    def _process_lives(self) -> bool:
        if not self._watch_process:
            return True
        return self._process is not None and is_alive(self._process)
