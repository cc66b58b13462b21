"""Read the loss curve and the findings of runs that nobody has opened yet, one after the other."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from tdbg_lab.errors import TdbgError
from tdbg_lab.server.digest import Digest, digest
from tdbg_lab.server.roots import require_inside, require_no_way_out

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tdbg_lab.server.catalog import Catalog
    from tdbg_lab.server.hub import Hub
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.summary import Summaries

__all__ = ["Backfill"]

log = logging.getLogger(__name__)

MAX_RUNS = 200
"""The newest runs; older ones show their curve once they are opened."""


class Backfill:
    """A background task that makes digests. Takes at most half of one thread."""

    def __init__(self, catalog: Catalog, summaries: Summaries, hub: Hub, *, pool: Executor) -> None:
        self._catalog = catalog
        self._summaries = summaries
        self._hub = hub
        self._pool = pool
        self._failed: set[tuple[str, tuple[int, ...]]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, unless it is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())

    def stop(self) -> None:
        """End; twice does no harm."""
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        snapshot = self._catalog.snapshot
        self._failed.intersection_update((run_id, line.stamp) for run_id, line in snapshot.lines.items())
        newest = sorted(snapshot.lines, key=lambda run_id: snapshot.lines[run_id].created_ns, reverse=True)
        for run_id in newest[:MAX_RUNS]:
            attempt = (run_id, snapshot.lines[run_id].stamp)
            if attempt in self._failed or not self._summaries.lacks(run_id):
                continue
            started = time.monotonic()
            found = snapshot.entries[run_id]
            result = await asyncio.get_running_loop().run_in_executor(self._pool, _digest, found)
            if result is None:
                self._failed.add(attempt)
            else:
                self._summaries.keep(found, result)
                self._hub.runs_changed()
            await asyncio.sleep(time.monotonic() - started)


def _digest(entry: Entry) -> Digest | None:
    from tdbg_lab.run import open_run

    try:
        require_inside(entry)
        require_no_way_out(entry)
        return digest(open_run(entry.directory))
    except TdbgError:
        return None
    except Exception:
        log.exception("The run %s cannot be read", entry.relative)
        return None
