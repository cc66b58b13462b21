"""Which runs there are below a place on an object store.

What is found is written into the mirrors of the runs - their ``run.json`` and ``edits.json``, nothing
else - so that a list of a local folder is a list of the object store.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.store.file_moves import replace_file
from tdbg_lab.store.info import EDITS_FILE, read_info
from tdbg_lab.store.layout import read_bytes
from tdbg_lab.store.limits import MAX_JSON_BYTES, MAX_LIST_DEPTH
from tdbg_lab.store.listing import RunSummary, summarize_run
from tdbg_lab.store.remote.keys import RUN_KEY, is_file_key
from tdbg_lab.store.remote.objects import QUICK, Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.own_folders import make_folder
from tdbg_lab.store.remote.place import MIRROR_VARIABLE, mirror_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.store.remote.objects import ObjectInfo
    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["RemoteCatalog", "find_remote_runs"]

THREADS: Final = 8
MAX_FOLDERS: Final = 20_000
SETTLED_LOOKS: Final = 15
"""A run that has ended is looked at again only every so many looks."""


@dataclass(slots=True)
class _Folder:
    """What one look at a folder found."""

    relative: str
    folders: list[str]
    objects: dict[str, ObjectInfo]


class RemoteCatalog:
    """Runs below `url`. One thread at a time. Makes no request when built.

    Raises
    ------
    ConfigError
        If an option is wrong.
    MissingDependencyError
        If obstore is not installed.
    """

    def __init__(self, url: StoreUrl, options: Mapping[str, Any] | None = None) -> None:
        self.url = url
        merged = storage_options(url, options)
        self._objects = Objects(url, merged, QUICK)
        self.path = mirror_path(url, merged)
        """Where the mirrors of the runs lie, each at its path relative to `url`."""
        self._versions: dict[str, tuple[str, int, int]] = {}
        self._looks = 0
        self.runs: tuple[str, ...] = ()
        """Paths of the runs relative to `url`, as of the last look; ``""`` when it is one itself."""
        self.truncated = False
        """Whether the last look met a bound, so that runs may be missing."""

    def look(self) -> None:
        """Look for runs, and bring what a list shows of them up to date.

        Raises
        ------
        RemoteError
            If the object store cannot be read.
        StoreError, OSError
            If the copies cannot be written.
        """
        self._looks += 1
        make_folder(self.path, MIRROR_VARIABLE)
        settled = self._settled()
        found: list[str] = []
        level, visited = [""], 0
        with ThreadPoolExecutor(THREADS, thread_name_prefix="tdbg-list") as pool:
            for _ in range(MAX_LIST_DEPTH + 1):
                found += [relative for relative in level if relative in settled]
                level = [relative for relative in level if relative not in settled]
                visited += len(level)
                self.truncated = visited > MAX_FOLDERS
                looked = list(pool.map(self._look_into, level[:MAX_FOLDERS]))
                runs = [folder for folder in looked if RUN_KEY in folder.objects]
                list(pool.map(self._copy, runs))
                found += [folder.relative for folder in runs]
                level = [
                    f"{folder.relative}/{name}".strip("/")
                    for folder in looked
                    if RUN_KEY not in folder.objects
                    for name in folder.folders
                ]
        self.runs = tuple(found)

    def _settled(self) -> set[str]:
        """Known runs that have ended, except on the looks that look at them again."""
        if self._looks % SETTLED_LOOKS == 0:
            return set()
        ended = set()
        for relative in self.runs:
            with contextlib.suppress(OSError, ValueError):
                if read_info(self.path / relative).status is not RunStatus.RUNNING:
                    ended.add(relative)
        return ended

    def _look_into(self, relative: str) -> _Folder:
        folders, objects = self._objects.folder(relative)
        names = [name for name in folders if not name.startswith(".") and "\\" not in name and name != ".."]
        return _Folder(relative, names, {info.key.rpartition("/")[2]: info for info in objects})

    def _copy(self, folder: _Folder) -> None:
        """Copy a run's small files where they changed; their age tells whether its sender lives."""
        for name in (EDITS_FILE, RUN_KEY):  # the second makes it a run
            info = folder.objects.get(name)
            if info is None or not is_file_key(name):
                continue
            version = (info.tag, info.size, info.modified_ns)
            if self._versions.get(info.key) == version:
                continue
            data = self._objects.get(info.key, MAX_JSON_BYTES)
            if data is not None:
                _replace(self.path / folder.relative / name, data, info.modified_ns)
                self._versions[info.key] = version


def find_remote_runs(
    url: StoreUrl, options: Mapping[str, Any] | None = None, limit: int | None = None
) -> list[RunSummary]:
    """Runs below `url`, the newest first. The ``path`` of a summary is that of the run's mirror.

    Raises
    ------
    RemoteError
        If the object store cannot be read.
    """
    catalog = RemoteCatalog(url, options)
    catalog.look()
    found = []
    for relative in catalog.runs:
        with contextlib.suppress(OSError, ValueError, NotFoundError):
            summary = summarize_run(catalog.path / relative)
            place = url.child(relative)
            found.append(replace(summary, url=str(place)))
    found.sort(key=lambda summary: summary.info.created_ns, reverse=True)
    return found[:limit]


def _replace(target: Path, data: bytes, modified_ns: int) -> None:
    """Write a file whole where its content differs, with a time of change that is not ours."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        if read_bytes(target, MAX_JSON_BYTES) == data:
            os.utime(target, ns=(modified_ns, modified_ns))
            return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data)
    os.utime(temporary, ns=(modified_ns, modified_ns))
    replace_file(temporary, target)
