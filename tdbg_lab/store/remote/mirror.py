"""A local copy of a run on an object store, brought up to date by reading only what is new.

The copy is an ordinary run directory. Several processes may share it: one at a time brings it up to
date, the others read what that one fetched.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.store.control import CONTROL
from tdbg_lab.store.info import EDITS_FILE
from tdbg_lab.store.layout import read_bytes, write_whole
from tdbg_lab.store.limits import MAX_JSON_BYTES, MAX_SEGMENT_FILE_BYTES
from tdbg_lab.store.remote.claim import run_id
from tdbg_lab.store.remote.copying import THREADS, Copy
from tdbg_lab.store.remote.incoming import Listing, read_listing
from tdbg_lab.store.remote.keys import RUN_KEY, ByteRange, is_live, sealed_key
from tdbg_lab.store.remote.outgoing import LocalFile, read_identity, walk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.store.remote.objects import ObjectInfo

__all__ = ["Mirror"]


class Mirror(Copy):
    """The copy of one run; arguments as `Copy`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tags: dict[str, tuple[str, int, int]] = {}
        self._edits: tuple[int, int] | None = None

    def send_request(self, identity: str) -> None:
        """Put a request that was made in the copy on the object store; it is withdrawn when that fails.

        Raises
        ------
        RemoteError
            If it cannot be sent.
        OSError
            If there is no such request.
        """
        key = f"{CONTROL}/{identity}.json"
        try:
            self._send_request(key)
        except StoreError:
            (self.path / key).unlink(missing_ok=True)
            raise

    def send_edits(self) -> None:
        """Put the edits of the copy on the object store, and remember which they were; raises as `Copy`."""
        stamp = _stamp(self.path / EDITS_FILE)
        super().send_edits()
        self._edits = stamp

    def _send_request(self, key: str) -> None:
        self._objects.create(key, read_bytes(self.path / key, MAX_JSON_BYTES))  # never over the answer

    def _is_there(self) -> bool:
        return (self.path / RUN_KEY).exists()

    def _bring_up_to_date(self) -> None:
        run_json = self._objects.get(RUN_KEY, MAX_JSON_BYTES)  # first read, last written: see `_finish`
        if run_json is None:
            raise NotFoundError(f"There is no run at {self.url}: it has no run.json.")
        self._begin(run_json)
        self._send_new()
        listing = read_listing(self._objects.walk())
        local = {file.key: file for file in walk(self.path)}
        with ThreadPoolExecutor(THREADS, thread_name_prefix="tdbg-fetch") as pool:
            jobs = [
                *(pool.submit(self._append, *item) for item in self._grown(listing)),
                *(pool.submit(self._fetch, info) for info in self._changed(listing, local)),
            ]
        self._remove(listing, local)
        for error in (job.exception() for job in jobs):
            if error is not None:
                raise error
        self.problems = listing.problems
        self._finish(run_json)

    def _begin(self, run_json: bytes) -> None:
        """Clear a copy of another run that was here before."""
        try:
            known = run_id(read_bytes(self.path / RUN_KEY, MAX_JSON_BYTES))
        except OSError:
            return
        if known is not None and known != run_id(run_json):
            (self.path / RUN_KEY).unlink()
            for file in walk(self.path):
                file.path.unlink(missing_ok=True)
            self._tags.clear()
            self._edits = None

    def _send_new(self) -> None:
        """Send edits that somebody made in the copy; requests go in `_remove`, which knows the listing."""
        stamp = _stamp(self.path / EDITS_FILE)
        if self._edits is not None and stamp is not None and stamp != self._edits:
            self.send_edits()
        elif self._edits is None:
            self._edits = stamp or (0, 0)

    def _changed(self, listing: Listing, local: Mapping[str, LocalFile]) -> list[ObjectInfo]:
        """Files to fetch; statistics before raw values."""
        found = [info for info in listing.files.values() if not self._is_current(info, local.get(info.key))]
        return sorted(found, key=lambda info: ("/raw/" in info.key, info.key))

    def _is_current(self, info: ObjectInfo, file: LocalFile | None) -> bool:
        if file is None or file.size != info.size:
            return False
        if info.key.endswith(".parquet"):
            return True
        known = self._tags.get(info.key)
        if known is not None:
            return known == _version(info)
        return "/raw/" in info.key and file.modified_ns == info.modified_ns

    def _fetch(self, info: ObjectInfo) -> None:
        dated = info.key.startswith("rank-")  # others are told apart by their time of change
        if not self._download(info, MAX_SEGMENT_FILE_BYTES, dated=dated):
            return
        self._tags[info.key] = _version(info)
        if info.key == EDITS_FILE:
            self._edits = _stamp(self.path / info.key)

    def _grown(self, listing: Listing) -> list[tuple[str, list[ByteRange], int]]:
        """Live segments that have more bytes on the object store than here."""
        found = []
        for segment, ranges in listing.live.items():
            if max(part.end for part in ranges) > self._reached(segment, ranges[0].identity):
                found.append((segment, ranges, listing.live_modified_ns[segment]))
        return found

    def _reached(self, segment: str, identity: str) -> int:
        """Bytes of a live segment that are here; -1 when another one is in its place."""
        path = self.path / segment
        try:
            size = path.lstat().st_size
        except OSError:
            return 0
        return size if read_identity(LocalFile(segment, path, size, 0, 0)) in {identity, None} else -1

    def _append(self, segment: str, ranges: list[ByteRange], modified_ns: int) -> None:
        path = self.path / segment
        path.parent.mkdir(parents=True, exist_ok=True)
        at = self._reached(segment, ranges[0].identity)
        if at < 0:
            path.unlink()
            at = 0
        if not at and 0 not in {part.first for part in ranges}:
            return
        with path.open("ab") as file:
            for part in sorted(ranges, key=lambda part: (part.first, -part.end)):
                if part.first > at:
                    break  # what is between has not arrived
                if part.end <= at:
                    continue
                data = self._objects.get_range(part.key, at - part.first, part.end - part.first)
                if data is None or len(data) != part.end - at:
                    break  # removed since the listing: it is sealed
                file.write(data)
                file.flush()
                at = part.end
        os.utime(path, ns=(modified_ns, modified_ns))

    def _remove(self, listing: Listing, local: Mapping[str, LocalFile]) -> None:
        """Remove what is no longer there, and send requests that are only here."""
        for key, file in local.items():
            if key in listing.files or key in listing.live or key in {RUN_KEY, EDITS_FILE}:
                continue
            if key.startswith(f"{CONTROL}/"):
                self._send_request(key)
            elif not is_live(key):
                file.path.unlink(missing_ok=True)
        for rank in self.path.glob("rank-*"):
            for path in rank.glob("*.arrows"):
                key = f"{rank.name}/{path.name}"
                gone = key not in listing.live
                if gone and (sealed_key(key) not in listing.files or (self.path / sealed_key(key)).exists()):
                    path.unlink(missing_ok=True)

    def _finish(self, run_json: bytes) -> None:
        """Write ``run.json``: where it says that the run has ended, all of the run is here."""
        target = self.path / RUN_KEY
        with contextlib.suppress(OSError):
            if read_bytes(target, MAX_JSON_BYTES) == run_json:
                return
        write_whole(target, run_json)


def _version(info: ObjectInfo) -> tuple[str, int, int]:
    return info.tag, info.size, info.modified_ns


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.lstat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size
