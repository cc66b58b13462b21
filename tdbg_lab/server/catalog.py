"""Which runs there are: the roots, scanned in a thread, and what the list says about each run."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.server.line import Line, read_line
from tdbg_lab.server.roots import Entry, entry, require_inside
from tdbg_lab.server.scan import Scan, scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from tdbg_lab.server.roots import Root
    from tdbg_lab.server.tail import RunTail

__all__ = ["Catalog", "Snapshot"]

log = logging.getLogger(__name__)

FRESH_S = 0.5
"""A scan younger than this answers a request without another one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The roots at one moment."""

    entries: Mapping[str, Entry]
    """By id."""
    lines: Mapping[str, Line]
    """By id; only runs whose ``run.json`` could be read."""
    folders: tuple[Path, ...]
    """Where new runs will appear, nearest to a root first."""
    truncated: bool
    """Whether a bound was hit, so that runs may be missing."""
    unread: tuple[str, ...] = ()
    """Names of roots that could not be read: not there yet, or not mounted at the moment."""


class Catalog:
    """Runs under the roots, by id. Scans run in `pool`, one at a time; everybody shares the result."""

    def __init__(self, roots: Sequence[Root], *, pool: Executor, depth: int, max_runs: int) -> None:
        self.roots = tuple(roots)
        self._pool = pool
        self._depth = depth
        self._max_runs = max_runs
        self._snapshot = Snapshot({}, {}, (), truncated=False)
        self._began_s = float("-inf")
        self._scanned_s = float("-inf")
        self._scanning = asyncio.Lock()
        self._devices: dict[str, int] = {}
        """By name of a root: the file system on which its runs were."""
        self.revision = 0
        """Grows whenever the list changes, whoever asked for the look that found it."""
        self.scan_took_s = 0.0
        """Duration of the last scan."""
        self.scan_cpu_s = 0.0
        """Processor time of the last scan."""

    @property
    def snapshot(self) -> Snapshot:
        """What the last scan found."""
        return self._snapshot

    def known(self, run_id: str) -> Entry | None:
        """The run of that id, if the last scan found it."""
        return self._snapshot.entries.get(run_id)

    async def get(self, run_id: str) -> Entry:
        """The run of that id.

        Raises
        ------
        NotFoundError
            When no root holds it.
        """
        found = self.known(run_id)
        if found is None:
            await self.fresh()
            found = self.known(run_id)
        if found is None:
            raise NotFoundError(f"There is no run {run_id!r} under the run roots; list the runs again.")
        await asyncio.get_running_loop().run_in_executor(self._pool, require_inside, found)
        return found

    async def fresh(self) -> Snapshot:
        """A snapshot that is at most `FRESH_S` old."""
        if time.monotonic() - self._scanned_s > max(FRESH_S, self.scan_took_s):
            await self.scan()
        return self._snapshot

    async def scan(self) -> None:
        """Look at the roots again, in a scan that begins now or later; who waits meanwhile shares it.

        A scan that is under way may have passed the folder that the caller asks because of.
        """
        asked_s = time.monotonic()
        async with self._scanning:
            if self._began_s < asked_s:
                await self._scan()

    async def poll(self) -> None:
        """Look again at the runs that say they are running."""
        running = [
            found
            for run_id, found in self._snapshot.entries.items()
            if (line := self._snapshot.lines.get(run_id)) and line.status is RunStatus.RUNNING
        ]
        if not running:
            return
        before = self._snapshot
        lines = await asyncio.get_running_loop().run_in_executor(
            self._pool, _read_lines, running, before.lines
        )
        if self._snapshot is before:  # else a scan came in between and knows better
            after = {**before.lines, **lines}
            self._set(replace(before, lines=after))

    async def reread(self, found: Entry) -> None:
        """Look again at one run: it was edited."""
        lines = await asyncio.get_running_loop().run_in_executor(self._pool, _read_lines, [found], {})
        before = self._snapshot
        if found.id in before.entries:  # else it was deleted meanwhile
            after = {**before.lines, **lines}
            self._snapshot = replace(before, lines=after)

    def listen(self, tail: RunTail) -> None:
        """Leave out a run whose directory is gone, before anybody who is told so asks for the list."""
        if tail.removed:
            self.forget(tail.entry.id)

    def forget(self, run_id: str) -> None:
        """Leave a run out: it was deleted."""
        before = self._snapshot
        entries = {key: each for key, each in before.entries.items() if key != run_id}
        lines = {key: each for key, each in before.lines.items() if key != run_id}
        self._set(replace(before, entries=entries, lines=lines))
        self._scanned_s = float("-inf")

    async def _scan(self) -> None:
        self._began_s = time.monotonic()
        before = self._snapshot
        after = await asyncio.get_running_loop().run_in_executor(self._pool, self._look, before.lines)
        self._scanned_s = time.monotonic()
        if after.truncated and not before.truncated:
            log.warning("There are more runs or folders under the run roots than are looked at.")
        self._set(after)

    def _set(self, after: Snapshot) -> None:
        before, self._snapshot = self._snapshot, after
        if _differ(before.lines, after.lines):
            self.revision += 1

    def _look(self, known: Mapping[str, Line]) -> Snapshot:
        """Scan all roots. Runs in the pool."""
        started_s, cpu_s = time.monotonic(), time.thread_time()
        after = self._read(known)
        self.scan_took_s = time.monotonic() - started_s
        self.scan_cpu_s = time.thread_time() - cpu_s
        return after

    def _read(self, known: Mapping[str, Line]) -> Snapshot:
        entries: dict[str, Entry] = {}
        folders: list[Path] = []
        unread: list[str] = []
        truncated = False
        looks = [self._scan_root(root) for root in self.roots]
        shares = _shares([len(found.runs) for found in looks], self._max_runs)
        for root, found, share in zip(self.roots, looks, shares, strict=True):
            entries.update((each.id, each) for each in (entry(root, path) for path in found.runs[:share]))
            folders.extend(found.folders)
            if root.remote is None and self._is_unread(root, found):
                unread.append(root.name)
            truncated = truncated or found.truncated or share < len(found.runs)
        lines = _read_lines(list(entries.values()), known)
        readable = {run_id: each for run_id, each in entries.items() if run_id in lines}
        return Snapshot(readable, lines, tuple(folders), truncated=truncated, unread=tuple(unread))

    def _is_unread(self, root: Root, found: Scan) -> bool:
        """Whether a folder is not there; so is one that had runs and is empty on another file system.

        It is the place where theirs is mounted.
        """
        device = _device(root.path)
        if found.runs:
            self._devices[root.name] = device
        return not found.runs and (not found.folders or self._devices.get(root.name, device) != device)

    def _scan_root(self, root: Root) -> Scan:
        if root.remote is not None:
            root.remote.want()
        return scan(root, depth=self._depth, max_runs=self._max_runs)


def _device(path: Path) -> int:
    """The file system that a folder is on; -1 when it is not there."""
    try:
        return path.stat().st_dev
    except OSError:
        return -1


def _shares(counts: Sequence[int], limit: int) -> list[int]:
    """How many runs of each root are listed: those of a full root leave room for those of others."""
    shares, left = [0] * len(counts), limit
    ascending = sorted(range(len(counts)), key=lambda index: counts[index])
    for done, index in enumerate(ascending):
        shares[index] = min(counts[index], left // (len(counts) - done))
        left -= shares[index]
    return shares


def _differ(before: Mapping[str, Line], after: Mapping[str, Line]) -> bool:
    """Whether the list changed, apart from how far runs are that go on: open runs tell that themselves."""
    if before.keys() != after.keys():
        return True
    pairs = ((line, after[run_id]) for run_id, line in before.items())
    return any(one is not two and _apart_from_progress(one, two) != two for one, two in pairs)


def _apart_from_progress(line: Line, later: Line) -> Line:
    goes_on = line.status is later.status is RunStatus.RUNNING
    last_step = later.last_step if goes_on else line.last_step
    return replace(line, last_write_ns=later.last_write_ns, last_step=last_step)


def _read_lines(entries: Sequence[Entry], known: Mapping[str, Line]) -> dict[str, Line]:
    """Lines of `entries`, without reading again what did not change."""
    lines: dict[str, Line] = {}
    for each in entries:
        line = read_line(each, known.get(each.id))
        if line is not None:
            lines[each.id] = line
    return lines
