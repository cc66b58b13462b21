"""Starts the rule runner of an open run that has none."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tdbg_lab.errors import TdbgError
from tdbg_lab.records import RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from subprocess import Popen

    from tdbg_lab.run import Run
    from tdbg_lab.server.tail import RunTail

__all__ = ["RuleRunners"]

log = logging.getLogger(__name__)

_LOOK_S = 15.0
"""Time between two looks at whether a run still has its rules: a runner that is gone is replaced."""


class RuleRunners:
    """Listens to tails; a running run that nobody's rules look after gets the default ones.

    The runner is a process of its own that ends with the run, whatever becomes of this server.

    Parameters
    ----------
    pool
        Where run directories are read and processes started.
    clock
        Monotonic clock, s.
    """

    def __init__(self, pool: Executor, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._looked_s: dict[str, float] = {}
        self._processes: dict[str, Popen[bytes]] = {}

    def listen(self, tail: RunTail) -> None:
        """Look after a run, now and then."""
        run, now_s = tail.run, self._clock()
        if run is None or tail.removed or tail.entry.root.remote is not None:
            return
        if now_s - self._looked_s.get(tail.entry.id, -_LOOK_S) < _LOOK_S:
            return
        self._looked_s = {key: at_s for key, at_s in self._looked_s.items() if now_s - at_s < _LOOK_S}
        self._looked_s[tail.entry.id] = now_s
        self._pool.submit(self._start, tail.entry.id, run)

    def _start(self, run_id: str, run: Run) -> None:
        from tdbg_lab.rules import launch
        from tdbg_lab.rules.presence import is_attended

        self._forget_ended()
        if run_id in self._processes or run.status is not RunStatus.RUNNING or is_attended(run.path):
            return
        try:
            process = launch(run.path)
        except (TdbgError, OSError) as error:
            log.warning("No rules look after %s: %s", run.path.name, error)
            return
        if process is not None:
            self._processes[run_id] = process

    def _forget_ended(self) -> None:
        """Let go of processes that have ended: until somebody asks, the system keeps them."""
        for run_id, process in list(self._processes.items()):
            if process.poll() is not None:
                self._processes.pop(run_id, None)
