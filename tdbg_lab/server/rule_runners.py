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

    from tdbg_lab.rules.presence import Unattended
    from tdbg_lab.run import Run
    from tdbg_lab.server.tail import RunTail

__all__ = ["RuleRunners"]

log = logging.getLogger(__name__)

_LOOK_S = 6.0
"""Time between two looks at whether a run still has its rules: a runner that is gone is replaced. Longer
than from one sign of life of a runner to the next."""


_FORGET_S = 10 * _LOOK_S
"""A run that is not heard of for so long is a new one."""


class RuleRunners:
    """Listens to tails; a running run that nobody's rules look after gets the default ones.

    Nobody's at two looks, that is: a training that has just begun is about to start its own, and a sign of
    life seems old where the clock was set.

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
        self._unattended: Unattended | None = None
        """Comes with the rules, which load when a run is open."""
        self._processes: dict[str, Popen[bytes]] = {}

    def listen(self, tail: RunTail) -> None:
        """Look after a run, now and then."""
        run, now_s = tail.run, self._clock()
        if run is None or tail.removed or tail.entry.root.remote is not None:
            return
        if now_s - self._looked_s.get(tail.entry.id, -_LOOK_S) < _LOOK_S:
            return
        self._looked_s = {key: at_s for key, at_s in self._looked_s.items() if now_s - at_s < _FORGET_S}
        self._looked_s[tail.entry.id] = now_s
        self._pool.submit(self._start, tail.entry.id, run, now_s)

    def _start(self, run_id: str, run: Run, now_s: float) -> None:
        from tdbg_lab.rules import launch
        from tdbg_lab.rules.presence import Unattended

        self._forget_ended()
        unattended = self._unattended = self._unattended or Unattended()
        if run_id in self._processes or run.status is not RunStatus.RUNNING:
            unattended.forget(run.path)
            return
        left_s = unattended.for_s(run.path, now_s)
        if left_s is None or left_s < _LOOK_S:
            return
        unattended.forget(run.path)
        try:
            process = launch(run.path, stands_in=True)
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
