"""Run roots on object stores: threads that keep local mirrors, so that nothing else touches the network.

The list of runs is brought up to date while somebody asks for it, and a run while it is open. All
other parts of the server read and watch the mirrors like any other folder.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.background import start_thread
from tdbg_lab.errors import TdbgError
from tdbg_lab.store.listing import find_runs
from tdbg_lab.store.remote.catalog import RemoteCatalog
from tdbg_lab.store.remote.mirror import Mirror
from tdbg_lab.store.remote.url import StoreUrl, parse_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["RemoteRoot", "RemoteRun"]

log = logging.getLogger(__name__)

LIST_INTERVAL_S: Final = 5.0
"""Shortest time between two looks for new runs."""
WANTED_S: Final = 30.0
"""How long after the last request for the list it is kept fresh."""
TICK_S: Final = 0.1
THREADS: Final = 4


class RemoteRun:
    """An open run's way to its object store. Reading never goes there; requests and edits do."""

    def __init__(self, root: RemoteRoot, relative: str, mirror: Mirror) -> None:
        self._root = root
        self._relative = relative
        self._mirror = mirror
        self.unreachable: str | None = None
        """Why the last look at the object store failed."""
        self.due_s = 0.0
        self.busy = False

    @property
    def problems(self) -> list[str]:
        """What of the run is not in the mirror, and why."""
        return [*self._mirror.problems, *filter(None, [self.unreachable])]

    def pull(self) -> bool:
        """Nothing: the threads of the root do that."""
        return False

    def look(self) -> None:
        """Bring the mirror up to date. Belongs to the threads of the root.

        Raises
        ------
        TdbgError
            If that fails.
        """
        self._mirror.pull(force=True)

    def send_request(self, identity: str) -> None:
        """Put a request on the object store; see `Mirror.send_request`."""
        self._mirror.send_request(identity)

    def send_edits(self) -> None:
        """Put edits on the object store; see `Mirror.send_edits`."""
        self._mirror.send_edits()

    def start(self) -> None:
        """Keep the mirror up to date from now on."""
        self._root.follow(self._relative, self)

    def stop(self) -> None:
        """No longer; twice does no harm."""
        self._root.unfollow(self._relative, self)


class RemoteRoot:
    """A run root on an object store. Its thread starts with the first request for it.

    Raises
    ------
    ConfigError
        If the address or an option is wrong.
    MissingDependencyError
        If obstore is not installed.
    """

    def __init__(
        self, url: str, options: Mapping[str, Any] | None = None, *, interval_s: float = 2.0
    ) -> None:
        self.url: StoreUrl = parse_url(url)
        self._options = dict(options or {})
        self._catalog = RemoteCatalog(self.url, self._options)
        self.path = self._catalog.path
        """Where the mirrors lie."""
        self._interval_s = interval_s
        self._followed: dict[str, RemoteRun] = {}
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._free = threading.Semaphore(THREADS)
        self._wanted_s = float("-inf")
        self._list_due_s = 0.0
        self._listing = False
        self._known = 0
        self._problem: str | None = None

    def want(self) -> None:
        """Somebody asks for the list: keep it fresh for a while. Returns at once."""
        self._wanted_s = time.monotonic()
        self._wake()

    def run(self, relative: str) -> RemoteRun:
        """The way to a run's object store, for one reader."""
        relative = "" if relative == "." else relative
        place = self.url.child(relative)
        mirror = Mirror(place, self._options, path=self.path / relative, interval_s=self._interval_s)
        return RemoteRun(self, relative, mirror)

    def follow(self, relative: str, run: RemoteRun) -> None:
        """Keep a run's mirror up to date."""
        with self._lock:
            self._followed[relative] = run
        self._wake()

    def unfollow(self, relative: str, run: RemoteRun) -> None:
        """No longer, unless another reader took its place."""
        with self._lock:
            if self._followed.get(relative) is run:
                del self._followed[relative]

    def close(self) -> None:
        """End the thread; what is under way ends by its own time-out."""
        self._closed = True
        self._woken.set()

    def _wake(self) -> None:
        self._woken.set()
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = start_thread(self._work, "tdbg-remote")  # else the next one tries again

    def _work(self) -> None:
        while not self._closed:
            idle = self._hand_out(time.monotonic())
            self._woken.wait(None if idle else TICK_S)
            self._woken.clear()

    def _hand_out(self, now_s: float) -> bool:
        """Start what is due; whether there is nothing to wait for but a request."""
        wanted = now_s - self._wanted_s < WANTED_S
        if wanted and not self._listing and now_s >= self._list_due_s:
            self._listing = True
            if not self._start(self._list):
                self._listing = False
        with self._lock:
            followed = sorted(self._followed.values(), key=lambda run: run.due_s)
        for run in followed:
            if not run.busy and now_s >= run.due_s:
                run.busy = True
                if not self._start(partial(self._pull, run)):
                    run.busy = False
        return not wanted and not followed

    def _start(self, look: Callable[[], None]) -> bool:
        """Do it on a thread; False while enough are at work, or when no more may be started."""
        if not self._free.acquire(blocking=False):
            return False

        def work() -> None:
            try:
                look()
            finally:
                self._free.release()

        if start_thread(work, "tdbg-remote") is None:
            self._free.release()
            return False
        return True

    def _pull(self, run: RemoteRun) -> None:
        run.unreachable = self._guarded(run.look)
        run.due_s = time.monotonic() + self._interval_s
        run.busy = False

    def _list(self) -> None:
        problem = self._guarded(self._look)
        if problem is not None and problem != self._problem:
            log.warning("The runs below %s cannot be listed: %s", self.url, problem)
        self._problem = problem
        self._list_due_s = time.monotonic() + LIST_INTERVAL_S
        self._listing = False

    def _look(self) -> None:
        self._catalog.look()
        runs = set(self._catalog.runs)
        if len(runs) < self._known or not self._known:
            self._forget(runs)
        self._known = len(runs)

    def _forget(self, runs: set[str]) -> None:
        """Remove mirrors of runs that are gone."""
        for summary in find_runs(self.path):
            relative = summary.path.relative_to(self.path).as_posix()
            if not self._catalog.truncated and ("" if relative == "." else relative) not in runs:
                shutil.rmtree(summary.path, ignore_errors=True)

    @staticmethod
    def _guarded(function: Callable[[], None]) -> str | None:
        """Call `function`; why it failed, else None."""
        try:
            function()
        except (TdbgError, OSError) as error:
            return str(error)
        except Exception as error:
            log.exception("A look at an object store failed")
            return type(error).__name__
        return None
