"""Everything the routes call, made once when the extension starts and closed when it ends."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.server.announce import Announcer
from tdbg_lab.server.asked import AskedJobs
from tdbg_lab.server.backfill import Backfill
from tdbg_lab.server.catalog import Catalog
from tdbg_lab.server.figures import Figures
from tdbg_lab.server.follow import Follower
from tdbg_lab.server.hub import Hub
from tdbg_lab.server.jobs import Jobs
from tdbg_lab.server.meters import Meters
from tdbg_lab.server.recheck import Rechecks
from tdbg_lab.server.report import Reports
from tdbg_lab.server.rule_runners import RuleRunners
from tdbg_lab.server.summary import Summaries
from tdbg_lab.server.tail import IDLE_INTERVAL_S, RunTail
from tdbg_lab.server.tails import Tails
from tdbg_lab.server.watch import FolderWatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jupyter_events.logger import EventLogger

    from tdbg_lab.server.roots import Entry, Root

__all__ = ["Limits", "Services"]

READERS = 4
"""Threads that read run directories."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the configuration decides."""

    scan_depth: int
    max_runs: int
    poll_interval_s: float
    close_delay_s: float
    pool_size: int
    job_workers: int
    cache_bytes: int
    start_rules: bool = False


class Services:
    """Builds the services and wires them to each other. Needs a running event loop."""

    def __init__(self, roots: Sequence[Root], limits: Limits, events: EventLogger) -> None:
        self._limits = limits
        self.readers = ThreadPoolExecutor(READERS, thread_name_prefix="tdbg-read")
        self.drawers = ThreadPoolExecutor(limits.pool_size, thread_name_prefix="tdbg-draw")
        self._run_watch: FolderWatch | None = None
        self._folder_watch: FolderWatch | None = None
        self.catalog = Catalog(roots, pool=self.readers, depth=limits.scan_depth, max_runs=limits.max_runs)
        self.tails = Tails(self._make_tail, close_delay_s=limits.close_delay_s, on_open=self._on_open)
        self.summaries = Summaries(self.catalog, lambda run_id: self.tails.get(run_id) is not None)
        self.hub = Hub(on_first=self._on_first, on_last=self._on_last)
        self.meters = Meters()
        self.announcer = Announcer(events, self.hub)
        self.backfill = Backfill(self.catalog, self.summaries, self.hub, pool=self.readers)
        self.jobs = Jobs(self.hub, workers=limits.job_workers)
        self.figures = Figures(self.jobs, pool=self.drawers, cache_bytes=limits.cache_bytes)
        self.asked = AskedJobs(self.jobs)
        self.rechecks = Rechecks(self.asked)
        self.reports = Reports(self.asked)
        self.rule_runners = RuleRunners(self.readers) if limits.start_rules else None
        self._follower: Follower | None = None

    async def aclose(self) -> None:
        """Close what was opened; twice does no harm."""
        self.hub.close()
        self._on_last()
        self.backfill.stop()
        await self.meters.aclose()
        await self.jobs.aclose()
        self.reports.close()
        await self.tails.aclose()
        for root in self.catalog.roots:
            if root.remote is not None:
                root.remote.close()
        for watch in (self._run_watch, self._folder_watch):
            if watch is not None:
                await asyncio.get_running_loop().run_in_executor(None, watch.close)
        self.readers.shutdown(wait=False, cancel_futures=True)
        self.drawers.shutdown(wait=False, cancel_futures=True)

    def _make_tail(self, entry: Entry) -> RunTail:
        if self._run_watch is None:
            self._run_watch = FolderWatch(asyncio.get_running_loop(), recursive=True)
        return RunTail(
            entry,
            pool=self.readers,
            watch=self._run_watch,
            poll_interval_s=self._limits.poll_interval_s,
            remote=entry.root.remote.run(entry.relative) if entry.root.remote else None,
        )

    def _on_open(self, tail: RunTail) -> None:
        tail.subscribe(self.catalog.listen, IDLE_INTERVAL_S)
        tail.subscribe(self.summaries.listen, IDLE_INTERVAL_S)
        tail.subscribe(self.announcer.listen, IDLE_INTERVAL_S)
        if self.rule_runners is not None:
            tail.subscribe(self.rule_runners.listen, IDLE_INTERVAL_S)

    def _on_first(self) -> None:
        if self._follower is None:
            self._folder_watch = FolderWatch(asyncio.get_running_loop(), recursive=False)
            self._follower = Follower(
                self.catalog,
                self.tails,
                self._folder_watch,
                hub=self.hub,
                poll_interval_s=self._limits.poll_interval_s,
            )
        self._follower.start()

    def _on_last(self) -> None:
        if self._follower is not None:
            self._follower.stop()
