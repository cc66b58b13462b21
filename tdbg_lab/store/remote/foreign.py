"""A local copy of what SageMaker Debugger wrote on an object store: a tensor store, or a profiler folder.

SageMaker leaves both in a bucket (``.../debug-output``, ``.../profiler-output``). Its files appear
whole and never change but for a few small ones, so that a copy is a matter of names, sizes and times.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.store.info import EDITS_FILE
from tdbg_lab.store.layout import entries
from tdbg_lab.store.limits import MAX_SEGMENT_FILE_BYTES
from tdbg_lab.store.remote.copying import THREADS, Copy
from tdbg_lab.store.remote.incoming import MAX_OBJECTS, RAW_BYTES
from tdbg_lab.store.remote.keys import RUN_KEY
from tdbg_lab.store.source import FOREIGN_NAMES, is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tdbg_lab.store.remote.objects import ObjectInfo

__all__ = ["ForeignMirror"]

_FOLDERS: Final = FOREIGN_NAMES | {"events"}
_STAGES: Final = (("events/",), ("index/", "collections/", "system/", "framework/"), ("",))
"""What is fetched after what: values before the index that tells of them, the mark of the end last."""
_PART: Final = re.compile(r"[A-Za-z0-9_=*][A-Za-z0-9_.=+*-]{0,254}")
_MAX_DEPTH: Final = 10


class ForeignMirror(Copy):
    """The copy of one store or profiler folder; arguments as `Copy`.

    Edits lie beside what was written, where they disturb nobody.
    """

    def send_request(self, _identity: str) -> None:
        """Such a job reads no requests.

        Raises
        ------
        StoreError
            Always.
        """
        raise StoreError(f"{self.url} was written by SageMaker Debugger, whose jobs take no requests.")

    def _is_there(self) -> bool:
        return is_foreign(self.path)

    def _bring_up_to_date(self) -> None:
        listed = self._listed()
        if not any(key != EDITS_FILE for key in listed):
            raise NotFoundError(
                f"There is no run at {self.url}: it has no run.json, nor files of SageMaker Debugger."
            )
        (self.path / RUN_KEY).unlink(missing_ok=True)  # of a run that was here before
        for key, path in _files(self.path):
            if key not in listed and key != EDITS_FILE:
                path.unlink(missing_ok=True)
        new = [info for info in listed.values() if not self._is_current(info)]
        with ThreadPoolExecutor(THREADS, thread_name_prefix="tdbg-fetch") as pool:
            for stage in _STAGES:
                now = [info for info in new if info.key.startswith(stage)]
                new = [info for info in new if not info.key.startswith(stage)]
                list(pool.map(self._fetch, now))

    def _fetch(self, info: ObjectInfo) -> None:
        self._download(info, MAX_SEGMENT_FILE_BYTES, dated=True)

    def _listed(self) -> dict[str, ObjectInfo]:
        """Objects to hold, by key."""
        found: dict[str, ObjectInfo] = {}
        self.problems = []
        for count, info in enumerate(self._objects.walk()):
            if count >= MAX_OBJECTS:
                self.problems.append(f"There are more than {MAX_OBJECTS} objects; the rest is not read.")
                break
            if _is_wanted(info.key):
                if info.size > MAX_SEGMENT_FILE_BYTES:
                    self.problems.append(f"{info.key} has {info.size} bytes, more than is read.")
                else:
                    found[info.key] = info
        self._limit_events(found)
        return found

    def _limit_events(self, found: dict[str, ObjectInfo]) -> None:
        """Leave out the oldest values where there are too many; the index still tells of them."""
        total = 0
        for info in _newest_first(info for info in found.values() if info.key.startswith("events/")):
            total += info.size
            if total > RAW_BYTES:
                del found[info.key]
        if total > RAW_BYTES:
            self.problems.append(f"Only the newest {RAW_BYTES // 2**20} MB of values are read.")

    def _is_current(self, info: ObjectInfo) -> bool:
        if info.key == EDITS_FILE:
            return (self.path / info.key).exists()  # made here, or read once
        try:
            facts = (self.path / info.key).lstat()
        except OSError:
            return False
        return (facts.st_size, facts.st_mtime_ns) == (info.size, info.modified_ns)


def _newest_first(infos: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    return sorted(infos, key=lambda info: (info.modified_ns, info.key), reverse=True)


def _is_wanted(key: str) -> bool:
    """Whether an object is a file of a store or a profiler folder: plain parts, none leading out."""
    parts = key.split("/")
    if key != EDITS_FILE and parts[0] not in _FOLDERS:
        return False
    if key.endswith(".tmp") and parts[0] != "framework":  # a timeline that is open is read as it grows
        return False
    return len(parts) <= _MAX_DEPTH and all(_PART.fullmatch(part) for part in parts)


def _files(folder: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Files of the copy, with their keys."""
    for entry in entries(folder):
        key = prefix + entry.name
        if not prefix and entry.name not in _FOLDERS:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(folder / entry.name, f"{key}/")
        elif entry.is_file(follow_symlinks=False):
            yield key, folder / entry.name
