"""Whether a run still goes on, seen from a rule runner on whatever machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError
from tdbg_lab.profiler.lifetime import Lifetime
from tdbg_lab.records import RunStatus
from tdbg_lab.store.attempts import attempts_stamp
from tdbg_lab.store.findings import read_rule_status
from tdbg_lab.store.source import is_foreign, source_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tdbg_lab.store.source import RunSource

__all__ = ["Presence", "Unattended"]

_PROCESS_LOOK_S = 0.5
ATTENDED_NS = 15_000_000_000
"""A runner that has said nothing for so long is gone, ns: three of its heartbeats."""
_FORGET_S = 3600.0


class Presence:
    """Tells why to end: the run has ended, its process is gone, its directory is deleted, or it goes on anew.

    A process on another machine or in another container cannot be looked at: then only ``run.json`` tells.

    Raises
    ------
    NotFoundError
        If there is no run.
    """

    def __init__(self, run_path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        source = source_of(run_path)
        try:
            info = source.info()
        except (OSError, ValueError) as error:
            raise NotFoundError(f"There is no run in {run_path.name!r}: {error}") from error
        self.name = info.name
        process = info.process.find() if info.is_local else None
        self._lifetime: Lifetime | _StoreLifetime
        if is_foreign(run_path):
            self._lifetime = _StoreLifetime(source)
        else:
            self._lifetime = Lifetime(run_path, process, watch_process=info.is_local)
        self._path = run_path
        self._attempts_stamp = attempts_stamp(run_path)
        self._clock = clock
        self._looked_s = -_PROCESS_LOOK_S

    def over(self) -> str | None:
        """Why to end, or None. Looks at most twice a second."""
        if self._clock() - self._looked_s < _PROCESS_LOOK_S:
            return None
        self._looked_s = self._clock()
        if attempts_stamp(self._path) != self._attempts_stamp:
            return "the run goes on from a checkpoint"
        return self._lifetime.over()


class _StoreLifetime:
    """Tells that a store which another library wrote will not grow any more."""

    def __init__(self, source: RunSource) -> None:
        self._source = source

    def over(self) -> str | None:
        """Why to end, or None."""
        try:
            info = self._source.info()
        except (OSError, ValueError):
            return "the run directory is gone"
        return None if info.status is RunStatus.RUNNING else "the run has ended"


class Unattended:
    """Tells since when runs have no rule runner, from look to look.

    A sign of life that has changed since the look before is one, however old it seems: the clock of another
    machine may be wrong.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[float, int | None]] = {}
        """Since when a run has none, and the last sign of life of the one that it had."""

    def for_s(self, run_path: Path, now_s: float) -> float | None:
        """How long a run is known to have no runner, s: 0 at the first look that finds none. None: it has.

        Parameters
        ----------
        now_s
            Time of this look, of a clock that nobody sets.
        """
        beat_ns = _sign_of_life(run_path)
        if beat_ns is not None and abs(time.time_ns() - beat_ns) < ATTENDED_NS:
            self.forget(run_path)
            return None
        if run_path not in self._seen:
            self._seen = {path: seen for path, seen in self._seen.items() if now_s - seen[0] < _FORGET_S}
        since_s, known_ns = self._seen.get(run_path, (now_s, beat_ns))
        since_s = since_s if beat_ns == known_ns else now_s
        self._seen[run_path] = since_s, beat_ns
        return now_s - since_s

    def forget(self, run_path: Path) -> None:
        """What was seen of a run counts no more."""
        self._seen.pop(run_path, None)


def _sign_of_life(run_path: Path) -> int | None:
    """When a runner wrote last, by the clock of its machine, ns; None where none did, or has ended."""
    status = read_rule_status(run_path)
    beat_ns = status.get("heartbeat_ns")
    return beat_ns if isinstance(beat_ns, int) and not status.get("ended") else None
