"""While a client is connected: keep the list fresh, and keep an eye on the runs that are running."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from tdbg_lab.records import RunStatus
from tdbg_lab.server.tail import IDLE_INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.server.catalog import Catalog
    from tdbg_lab.server.hub import Hub
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.tail import RunTail
    from tdbg_lab.server.tails import Tails
    from tdbg_lab.server.watch import FolderWatch

__all__ = ["Follower"]

log = logging.getLogger(__name__)

MAX_FOLLOWED = 16
"""Running runs that are kept open without being watched; the latest ones."""
MAX_WATCHED_FOLDERS = 512
"""Folders in which new runs are noticed at once; in the others with the next full scan."""
SCAN_INTERVAL_S = 3.0
"""Time between full scans when nothing is noticed: folders may be watched badly, or not at all."""
SCAN_CPU_SHARE = 0.05
"""These scans may take at most this share of a core."""
SCAN_SHARE = 0.25
"""The same of the time, which passes faster on a busy machine."""
SETTLE_S = 0.2
"""Pause after a change in a folder: several things are made at once."""


class Follower:
    """Background task of the list. `start` and `stop` follow the clients' coming and going."""

    def __init__(
        self, catalog: Catalog, tails: Tails, watch: FolderWatch, *, hub: Hub, poll_interval_s: float
    ) -> None:
        self._catalog = catalog
        self._tails = tails
        self._watch = watch
        self._hub = hub
        self._poll_interval_s = poll_interval_s
        self._woken = asyncio.Event()
        self._followed: dict[str, tuple[Entry, Callable[[], None]]] = {}
        self._stop_watching: Callable[[], None] = lambda: None
        self._folders: frozenset[str] = frozenset()
        self._next_scan_s = 0.0
        self._told_revision = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; does nothing when it is under way."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())

    def stop(self) -> None:
        """End, and let go of all runs; twice does no harm."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for run_id in list(self._followed):
            self._drop(run_id)
        self._stop_watching()
        self._folders = frozenset()
        self._next_scan_s = 0.0

    async def _work(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:
                log.exception("The list of runs could not be refreshed")
                self._next_scan_s = 0.0  # what woke us is still to be seen
            await self._pause()

    async def _look(self) -> None:
        """Look at the folders when something happened in them or it is time, else at the running runs."""
        loop = asyncio.get_running_loop()
        if self._woken.is_set() or loop.time() >= self._next_scan_s:
            self._woken.clear()  # before the scan: what happens during it is seen by the next one
            await self._catalog.scan()
            self._next_scan_s = loop.time() + _rest_s(self._catalog.scan_took_s, self._catalog.scan_cpu_s)
        else:
            await self._catalog.poll()
        self._watch_folders()
        self._follow_running()
        if self._told_revision != self._catalog.revision:
            self._told_revision = self._catalog.revision
            self._hub.runs_changed()

    async def _pause(self) -> None:
        await asyncio.sleep(max(SETTLE_S, self._catalog.scan_took_s))
        with contextlib.suppress(TimeoutError):  # not `wait_for`: see `RunTail`
            async with asyncio.timeout(self._poll_interval_s):
                await self._woken.wait()

    def _watch_folders(self) -> None:
        """Watch the folders of the last scan. The watch wakes us once it stands: see `FolderWatch.add`."""
        folders = self._catalog.snapshot.folders[:MAX_WATCHED_FOLDERS]
        names = frozenset(map(str, folders))
        if names == self._folders:
            return
        self._stop_watching()
        self._stop_watching = self._watch.add(folders, self._woken.set)
        self._folders = names

    def _follow_running(self) -> None:
        snapshot = self._catalog.snapshot
        running = [run_id for run_id, line in snapshot.lines.items() if line.status is RunStatus.RUNNING]
        running.sort(key=lambda run_id: snapshot.lines[run_id].created_ns, reverse=True)
        wanted = set(running[:MAX_FOLLOWED])
        for run_id in set(self._followed) - wanted:
            self._drop(run_id)
        for run_id in wanted - set(self._followed):
            found = snapshot.entries[run_id]
            tail = self._tails.acquire(found)
            self._followed[run_id] = (found, tail.subscribe(self._on_change, IDLE_INTERVAL_S))

    def _drop(self, run_id: str) -> None:
        found, unsubscribe = self._followed.pop(run_id)
        unsubscribe()
        self._tails.release(found)

    def _on_change(self, tail: RunTail) -> None:
        if tail.removed:
            if tail.entry.id in self._followed:
                self._drop(tail.entry.id)
            self._woken.set()
            self._hub.runs_changed()
        else:
            self._hub.run_changed(tail.entry.id)


def _rest_s(took_s: float, cpu_s: float) -> float:
    """Time from a scan to the next one when nothing is noticed."""
    return max(SCAN_INTERVAL_S, took_s / SCAN_SHARE, cpu_s / SCAN_CPU_SHARE)
