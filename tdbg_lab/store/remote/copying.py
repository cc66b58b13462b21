"""A local copy of a place on an object store: one process at a time brings it up to date."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.errors import StoreError
from tdbg_lab.store.file_moves import replace_file
from tdbg_lab.store.info import EDITS_FILE
from tdbg_lab.store.layout import read_bytes
from tdbg_lab.store.limits import MAX_JSON_BYTES
from tdbg_lab.store.remote.lock import FileLock
from tdbg_lab.store.remote.objects import QUICK, Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.own_folders import make_folder
from tdbg_lab.store.remote.place import LOCK, MIRROR_VARIABLE, make_room, mirror_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.store.remote.objects import ObjectInfo
    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["INTERVAL_S", "THREADS", "Copy"]

INTERVAL_S: Final = 2.0
"""Shortest time between two looks at the object store."""
THREADS: Final = 8
"""Objects that are fetched at the same time."""
OTHERS_WAIT_S: Final = 30.0
"""How long to wait for the first copy that another process makes."""


class Copy:
    """The copy of what is below one address. Thread-safe. Makes no request when built.

    Parameters
    ----------
    options
        Storage options, see `tdbg_lab.store.remote.options`.
    path
        Where the copy lies; by default a folder in the cache, bounded in size.

    Raises
    ------
    ConfigError
        If an option is wrong.
    MissingDependencyError
        If obstore is not installed.
    """

    def __init__(
        self,
        url: StoreUrl,
        options: Mapping[str, Any] | None = None,
        *,
        path: Path | None = None,
        interval_s: float = INTERVAL_S,
        objects: Objects | None = None,
    ) -> None:
        self.url = url
        merged = storage_options(url, options)
        self._objects = objects or Objects(url, merged, QUICK)
        self._cached = path is None
        self.path = path or mirror_path(url, merged)
        self.problems: list[str] = []
        """What is not in the copy, and why."""
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._looked_s = float("-inf")

    def pull(self, *, force: bool = False) -> bool:
        """Fetch what is new, unless the last look is younger than the interval; whether it looked.

        Raises
        ------
        NotFoundError
            If there is no run.
        RemoteError
            If the object store cannot be read.
        StoreError
            If the copy cannot be written.
        """
        with self._lock:
            if not force and time.monotonic() - self._looked_s < self._interval_s:
                return False
            try:
                return self._pull()
            except OSError as error:
                if isinstance(error, StoreError):
                    raise
                raise StoreError(f"The copy of {self.url} cannot be written: {error.strerror}.") from error
            finally:
                self._looked_s = time.monotonic()

    def send_edits(self) -> None:
        """Put the edits of the copy on the object store.

        Raises
        ------
        RemoteError
            If they cannot be sent.
        OSError
            If there are none.
        """
        self._objects.put(EDITS_FILE, read_bytes(self.path / EDITS_FILE, MAX_JSON_BYTES))

    def _pull(self) -> bool:
        make_folder(self.path, MIRROR_VARIABLE)
        lock = FileLock(self.path / LOCK)
        if not lock.acquire():
            self._wait_for_others()
            return True
        try:
            os.utime(self.path / LOCK)
            if self._cached:
                self._cached = False  # once is enough
                make_room(self.path)
            self._bring_up_to_date()
        finally:
            lock.release()
        return True

    def _wait_for_others(self) -> None:
        deadline = time.monotonic() + OTHERS_WAIT_S
        while not self._is_there() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _is_there(self) -> bool:
        """Whether the copy can be read, up to date or not."""
        raise NotImplementedError

    def _bring_up_to_date(self) -> None:
        """Fetch what is new; the lock is held."""
        raise NotImplementedError

    def _download(self, info: ObjectInfo, limit: int, *, dated: bool) -> bool:
        """Fetch an object whole; False when it is gone since the listing.

        Parameters
        ----------
        dated
            Give the file the object's time of change.
        """
        target = self.path / info.key
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        try:
            if not self._objects.download(info.key, temporary, limit):
                return False
            if dated:
                os.utime(temporary, ns=(info.modified_ns, info.modified_ns))
            replace_file(temporary, target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        return True
