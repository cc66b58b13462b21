"""Many rules over many runs, live, in one process."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import RunStatus
from tdbg_lab.rules.presence import Presence, Unattended
from tdbg_lab.rules.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tdbg_lab.records import Finding, Severity
    from tdbg_lab.rules.base import Rule

__all__ = ["Watch"]

log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""Least time between two looks for runs."""
_SURE_S = 6.0
"""Time for which a run has no rules before it is looked after: a training that has just begun is about to
start its own, and after the machine slept a sign of life is old. Longer than from one to the next."""
_SLICE_S = 0.5
"""Time for one run that is far behind; then it is the turn of the others."""
_SHARE = 0.05
"""Share of a core that looking for runs may take: below a folder with thousands it is done more seldom."""


@dataclass(slots=True)
class _Watched:
    runner: Runner
    presence: Presence


class Watch:
    """Looks after every running run below a folder that has no rule runner of its own.

    Parameters
    ----------
    root
        Where runs are found.
    rules
        Makes the rules for one run.
    stop_on
        Severity from which training is asked to stop, or None.
    clock
        Monotonic clock, s.
    """

    def __init__(
        self,
        root: Path,
        rules: Callable[[], Sequence[Rule]],
        *,
        stop_on: Severity | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._rules = rules
        self._stop_on = stop_on
        self._clock = clock
        self._look_due_s = self._clock()
        self._watched: dict[Path, _Watched] = {}
        self._given_up: set[Path] = set()
        self._unattended = Unattended()

    @property
    def runs(self) -> list[Path]:
        """Runs that are looked after now."""
        return list(self._watched)

    def run(self, wakes: Iterable[None], tell: Callable[[Path, Finding], None] | None = None) -> None:
        """Work at each wake, until there are no more; `tell` is called with each new finding."""
        told: dict[Path, set[str]] = {}
        for _ in wakes:
            for path, runner in self.work():
                if tell is None:
                    continue
                known = told.setdefault(path, set())
                for finding in runner.findings:
                    if finding.id not in known:
                        known.add(finding.id)
                        tell(path, finding)
        self.close()

    def work(self) -> list[tuple[Path, Runner]]:
        """Look for runs, as often as `_SHARE` allows, and check what is new in each; gives their runners."""
        if self._clock() >= self._look_due_s:
            self._find()
        done = [(path, one.runner) for path, one in self._watched.items()]
        for path, one in list(self._watched.items()):
            try:
                if one.runner.is_relieved():
                    one.runner.leave()
                    del self._watched[path]
                    continue
                why, began_s = one.presence.over(), self._clock()
                whole = one.runner.work(
                    last=why is not None,
                    enough=lambda began_s=began_s: self._clock() - began_s > _SLICE_S,  # type: ignore[misc]
                )
                if why is not None and whole:
                    one.runner.close()
                    del self._watched[path]
            except Exception:
                log.exception("The rules give up on %s; other runs go on", path.name)
                self._given_up.add(path)
                del self._watched[path]
        return done

    def close(self) -> None:
        """Say of every run that is looked after that its rules have stopped."""
        for one in self._watched.values():
            one.runner.close(stopped=True)
        self._watched.clear()

    def _find(self) -> None:
        from tdbg_lab.run import list_runs

        began_s = time.thread_time()
        found, now_s = list_runs(self._root), self._clock()
        self._look_due_s = now_s + max(_LOOK_S, (time.thread_time() - began_s) / _SHARE)
        for summary in found:
            path = summary.path
            if path in self._watched or path in self._given_up:
                continue
            if summary.status is not RunStatus.RUNNING:
                self._unattended.forget(path)
                continue
            left_s = self._unattended.for_s(path, now_s)
            if left_s is None or left_s < _SURE_S:
                continue
            self._unattended.forget(path)
            try:
                presence = Presence(path)
                runner = Runner(
                    path, self._rules(), stop_on=self._stop_on, name=presence.name, stands_in=True
                )
            except Exception:
                log.exception("The rules give up on %s; other runs go on", path.name)
                self._given_up.add(path)
                continue
            self._watched[path] = _Watched(runner, presence)
