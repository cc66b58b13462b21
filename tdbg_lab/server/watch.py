"""Tell when folders change: one thread for all of them, on the file system's own events.

Who needs to know for sure polls as well: network file systems deliver no events, and a folder that
cannot be watched is only logged.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from watchfiles import watch

from tdbg_lab.background import start_thread

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

__all__ = ["FolderWatch"]

log = logging.getLogger(__name__)

STEP_MS = 10
"""How often the thread looks at the events that came; half of the delay it adds."""
DEBOUNCE_MS = 40
"""Longest time events are gathered while more of them come."""
STANDING_MS = 100
"""How long after a watch stands those who asked for it are woken, at the latest."""
RETRY_S = 10.0
"""Time to the next attempt after one to watch has failed: others may use up all watches there are."""
MAX_FOLDERS = 1024
"""Folders watched at once; the others are left to polling."""


class FolderWatch:
    """Calls back on the event loop when something changes in a folder.

    Parameters
    ----------
    loop
        Where callbacks run.
    recursive
        Whether changes in subfolders count.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, recursive: bool) -> None:
        self._loop = loop
        self._recursive = recursive
        self._lock = threading.Lock()
        self._callbacks: dict[str, list[Callable[[], None]]] = {}
        self._restart = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, folders: Iterable[Path], callback: Callable[[], None]) -> Callable[[], None]:
        """Watch `folders`; call the returned function to stop (twice does no harm).

        Folders are not watched at once, and not while the set of all folders changes. What happens
        meanwhile is not told, so everybody is called once whenever the watch stands again.
        """
        names = [str(folder) for folder in folders]
        with self._lock:
            for name in names:
                self._callbacks.setdefault(name, []).append(callback)
        self._wake()

        def remove() -> None:
            with self._lock:
                for name in names:
                    callbacks = self._callbacks.get(name, [])
                    if callback in callbacks:
                        callbacks.remove(callback)
                    if not callbacks:
                        self._callbacks.pop(name, None)
                names.clear()
            self._wake()

        return remove

    def close(self) -> None:
        """End the thread. Callbacks that are already on their way may still come."""
        self._closed = True
        self._restart.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _wake(self) -> None:
        self._restart.set()
        if self._thread is None and not self._closed:
            self._thread = start_thread(self._work, "tdbg-watch")  # else there is polling until the next call

    def _work(self) -> None:
        while True:
            self._restart.clear()
            if self._closed:  # asked after the line before, so that nothing that `close` says is cleared
                return
            with self._lock:
                wanted = list(self._callbacks)[:MAX_FOLDERS]
            folders = [name for name in wanted if _is_there(name)]
            stood = self._follow(folders) if folders else True
            self._restart.wait(None if stood else RETRY_S)

    def _follow(self, folders: list[str]) -> bool:
        """Deliver events of `folders` until the set of folders changes; False when that failed."""
        stands = False
        try:
            for changes in watch(
                *folders,
                watch_filter=None,
                step=STEP_MS,
                debounce=DEBOUNCE_MS,
                stop_event=self._restart,
                rust_timeout=STANDING_MS,
                yield_on_timeout=True,
                recursive=self._recursive,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._tell({path for _, path in changes} if stands else set(folders))
                stands = True
        except (OSError, RuntimeError) as error:
            log.warning("Folders cannot be watched, polling instead: %s", error)
            return False
        return True

    def _tell(self, paths: set[str]) -> None:
        called: set[Callable[[], None]] = set()
        with self._lock:
            for path in paths:
                for folder in (path, *map(str, Path(path).parents)):
                    called.update(self._callbacks.get(folder, ()))
        try:
            for callback in called:
                self._loop.call_soon_threadsafe(callback)
        except RuntimeError:  # the loop is closed: the server ends
            self._closed = True


def _is_there(folder: str) -> bool:
    """Whether a folder can be watched; one of a file system that fails is left to polling."""
    try:
        return Path(folder).is_dir()
    except OSError:
        return False
