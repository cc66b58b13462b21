"""One task that keeps one run current, for any number of listeners."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError, TdbgError
from tdbg_lab.records import RunStatus
from tdbg_lab.server.digest import Digest, digest
from tdbg_lab.server.roots import require_inside, require_no_way_out
from tdbg_lab.store.source import is_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from tdbg_lab.run import Run
    from tdbg_lab.server.remote import RemoteRun
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.watch import FolderWatch

    Listener = Callable[["RunTail"], None]

__all__ = ["IDLE_INTERVAL_S", "LIVE_INTERVAL_S", "RunTail"]

log = logging.getLogger(__name__)

LIVE_INTERVAL_S = 0.06
"""Shortest time between two refreshes of a run that somebody looks at: what is written just after one
waits that long, and a step must be told within 100 ms."""
IDLE_INTERVAL_S = 1.0
"""The same, of a run that is only listed."""
REST_S = 0.02
"""Time to the next look after one that found nothing: half of a record may have been written."""
ALIVE_S = 1.0
"""Time between two looks at whether the training process is still there."""
MAX_LOGGED = 3
"""Failures that are logged before the next ones are kept quiet."""
ENDED_SLOWDOWN = 5
"""An ended run is polled this many times less often."""


class RunTail:
    """Opens a run and refreshes it whenever its directory changes.

    Reading happens in `pool`; listeners are called on the event loop, with the tail, after each
    change and once more when the directory is gone (`removed`). A refresh that fails is logged and
    tried again at the next change.
    """

    def __init__(
        self,
        entry: Entry,
        *,
        pool: Executor,
        watch: FolderWatch,
        poll_interval_s: float,
        remote: RemoteRun | None = None,
    ) -> None:
        self.entry = entry
        self._remote = remote
        self.removed = False
        self.digest: Digest | None = None
        self._run: Run | None = None
        self._pool = pool
        self._watch = watch
        self._poll_interval_s = poll_interval_s
        self._listeners: dict[Listener, float] = {}
        self._woken = asyncio.Event()
        self._failures = 0
        self._alive_until_s = 0.0
        self._error: Exception | None = None
        self._opened: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._follow())

    @property
    def run(self) -> Run | None:
        """The run, once it is open."""
        return self._run

    async def opened(self) -> Run:
        """The run, opened.

        Raises
        ------
        TdbgError
            When it cannot be opened.
        """
        if self._error is not None:
            raise self._error
        return await asyncio.shield(self._opened)

    def subscribe(self, listener: Listener, interval_s: float = LIVE_INTERVAL_S) -> Callable[[], None]:
        """Call `listener` after changes, at most every `interval_s`; returns what ends that."""
        self._listeners[listener] = interval_s
        self._woken.set()

        def unsubscribe() -> None:
            self._listeners.pop(listener, None)

        return unsubscribe

    def wake(self) -> None:
        """Look for changes now."""
        self._woken.set()

    async def aclose(self) -> None:
        """End the task; twice does no harm."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        stop_watching = self._watch.add([self.entry.directory], self._woken.set)
        if self._remote is not None:
            self._remote.start()
        try:
            while not await self._open_once(loop):
                await self._wait(self._poll_interval_s * ENDED_SLOWDOWN)
            self.tell()
            while not self.removed:
                await self._refresh_once(loop)
        finally:
            stop_watching()
            if self._remote is not None:
                self._remote.stop()
            self._opened.cancel()

    async def _open_once(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Open the run; False when that should be tried again after a change."""
        try:
            run = await loop.run_in_executor(self._pool, self._open)
        except Exception as error:  # noqa: BLE001 - told to who asks, logged below, tried again
            self.removed = isinstance(error, NotFoundError)
            if not isinstance(error, TdbgError):
                self._log_failure("opened", error)
            self._error = error
            self._opened.set_exception(error)
            self._opened.exception()  # nobody may be waiting
            self._opened = loop.create_future()
        else:
            self._error = None
            self._opened.set_result(run)
        return self.removed or self._run is not None

    async def _wait(self, timeout_s: float) -> None:
        """Wait for a change, or for the time after which to look anyhow."""
        # Not `wait_for`: until Python 3.12 it forgets that it was cancelled when what it waits for comes just
        # then, and the task would never end.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        self._woken.clear()

    async def _refresh_once(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a change, read it, tell it, and rest for the interval."""
        ended = self.digest is not None and self.digest.status is not RunStatus.RUNNING
        await self._wait(self._poll_interval_s * (ENDED_SLOWDOWN if ended else 1))
        started = time.monotonic()
        interval = REST_S
        if await loop.run_in_executor(self._pool, self._refresh):
            interval = min(self._listeners.values(), default=IDLE_INTERVAL_S)
            self.tell()
        took = time.monotonic() - started
        await asyncio.sleep(max(interval - took, took))

    def _open(self) -> Run:
        """Open the run. Runs in the pool."""
        from tdbg_lab.run import Run, open_run

        require_inside(self.entry)
        require_no_way_out(self.entry)
        directory, remote = self.entry.directory, self._remote
        run = open_run(directory) if remote is None else Run(directory, mirror=remote)
        self.digest = digest(run)
        self._run = run
        return run

    def _refresh(self) -> bool:
        """Read what is new; True when there is something to tell. Runs in the pool."""
        try:
            if is_run(self.entry.directory):
                return self._read()
        except Exception as error:  # noqa: BLE001 - logged below, tried again at the next change
            self._log_failure("refreshed", error)
            return False
        self.removed = True
        return True

    def _log_failure(self, done: str, error: Exception) -> None:
        self._failures += 1
        if self._failures <= MAX_LOGGED:
            note = "; further failures of this run are not logged" if self._failures == MAX_LOGGED else ""
            log.error("The run %s cannot be %s%s", self.entry.relative, done, note, exc_info=error)

    def _read(self) -> bool:
        run, before = self._run, self.digest
        if run is None:
            return False
        require_no_way_out(self.entry)
        run.refresh()
        status = self._status(run, before)
        if before is not None and run.version == before.version and status is before.status:
            return False  # by version: an edit refreshes the run too
        self.digest = digest(run, before, status=status)
        return True

    def _status(self, run: Run, before: Digest | None) -> RunStatus:
        """Where the run stands; looks for its process at most once in `ALIVE_S`."""
        if run.info.status is not RunStatus.RUNNING:
            return run.info.status
        now_s = time.monotonic()
        if before is not None and before.status is RunStatus.RUNNING and now_s < self._alive_until_s:
            return RunStatus.RUNNING
        self._alive_until_s = now_s + ALIVE_S
        return run.status

    def tell(self) -> None:
        """Call all listeners: the run changed, or what the list says of it."""
        for listener in list(self._listeners):
            try:
                listener(self)
            except Exception:
                log.exception("A listener of the run %s failed", self.entry.relative)
