"""How a store lies on disk, and which of its index files are new.

::

    collections/000000000/<worker>_collections.json
    index/<step // 1000, 9 digits>/<step, 12 digits>_<worker>.json
    events/<step, 12 digits>/<step, 12 digits>_<worker>.tfevents
    claim.smd                   while one worker writes
    training_job_end.ts         at the end

Files appear whole under their names (``.tmp`` before), the event file before its index file. Where
``index`` is missing altogether, the event files stand for it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path
from typing import NamedTuple

from tdbg_lab.store.layout import entries, subfolder
from tdbg_lab.store.smdebug.bounds import MAX_COLLECTION_FILES, MAX_INDEX_FILES

__all__ = [
    "CLAIM",
    "END",
    "EVENTS",
    "INDEX",
    "FileListing",
    "ListedFile",
    "Shelf",
    "is_smdebug_store",
    "list_collections",
    "modified_ns",
    "shelf_of",
]

CLAIM = "claim.smd"
END = "training_job_end.ts"
_COLLECTIONS_FILE = re.compile(r"(.{1,512})_collections\.json")
_GRAIN_NS = 10**8
"""Two changes closer than this may leave a folder with one modification time."""


class Shelf(NamedTuple):
    """Where files lie in folders below one folder, by step and worker."""

    name: str
    folder: re.Pattern[str]
    file: re.Pattern[str]
    """Step and worker are its groups."""


INDEX = Shelf("index", re.compile(r"\d{9,15}"), re.compile(r"(\d{12,18})_([^/\\\0]{1,512})\.json"))
EVENTS = Shelf("events", re.compile(r"\d{12,18}"), re.compile(r"(\d{12,18})_([^/\\\0]{1,512})\.tfevents"))


class ListedFile(NamedTuple):
    """A file that was not seen before."""

    step: int
    worker: str
    path: Path


def is_smdebug_store(path: Path) -> bool:
    """Whether a folder looks like what smdebug writes: its markers, or its folders with its names."""
    if (path / CLAIM).is_file() or (path / END).is_file():
        return True
    if subfolder(path / "collections", "000000000") is not None:
        return subfolder(path, "collections") is not None
    index = subfolder(path, "index")
    return index is not None and any(
        INDEX.folder.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) for entry in entries(index)
    )


def shelf_of(path: Path) -> Shelf:
    """Where to look for what was saved: in the index; in the event files where that is missing or empty."""
    index = subfolder(path, INDEX.name)
    if index is None:
        return EVENTS if modified_ns(path / INDEX.name) == 0 else INDEX
    return INDEX if any(INDEX.folder.fullmatch(entry.name) for entry in entries(index)) else EVENTS


def list_collections(path: Path) -> dict[str, Path]:
    """Worker and file of collections, by file name."""
    first = subfolder(path, "collections")
    directory = None if first is None else subfolder(first, "000000000")
    found: dict[str, tuple[str, Path]] = {}
    if directory is None:
        return {}
    for entry in entries(directory):
        match = _COLLECTIONS_FILE.fullmatch(entry.name)
        if match and entry.is_file(follow_symlinks=False) and len(found) < MAX_COLLECTION_FILES:
            found[entry.name] = (worker_name(match[1]), directory / entry.name)
    return dict(found[name] for name in sorted(found))


def worker_name(text: str) -> str:
    """A worker as it names itself: TensorFlow devices had ``/`` and ``:`` before they became a file."""
    return text.replace("_", "/").replace("-", ":") if text.startswith("_") else text


def modified_ns(path: Path) -> int:
    """Modification time; 0 when there is nothing."""
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


class FileListing:
    """Knows which files of a shelf were told. Looks only into folders that changed."""

    def __init__(self, path: Path, shelf: Shelf) -> None:
        self._path = path
        self.shelf = shelf
        self._listed_ns: dict[str, int] = {}
        """Modification time of each folder when it was listed; -1 to list it again."""
        self._told: dict[str, set[str]] = {}
        self._count = 0
        self._anchor: tuple[Path, tuple[int, int]] | None = None

    def new(self) -> list[ListedFile]:
        """Files that were not told yet, by step and worker."""
        top = subfolder(self._path, self.shelf.name)
        found: list[ListedFile] = []
        if top is None:
            return found
        names = [e.name for e in entries(top) if self.shelf.folder.fullmatch(e.name)]
        for name in sorted(names):
            folder = subfolder(top, name)
            if folder is not None:
                found += self._look(folder)
        found.sort(key=lambda file: (file.step, file.worker))
        if found and self._anchor is None:
            self._anchor = (found[0].path, _stamp(found[0].path))
        return found

    def replaced(self) -> bool:
        """Whether another store took the place of the one that was listed, or its index came."""
        if shelf_of(self._path) != self.shelf:
            return True
        return self._anchor is not None and _stamp(self._anchor[0]) != self._anchor[1]

    def _look(self, folder: Path) -> list[ListedFile]:
        changed_ns, now_ns = modified_ns(folder), time.time_ns()
        if self._listed_ns.get(folder.name) == changed_ns:
            return []
        told = self._told.setdefault(folder.name, set())
        found = []
        for entry in entries(folder):
            if entry.name in told or self._count >= MAX_INDEX_FILES:
                continue
            match = self.shelf.file.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False):
                told.add(entry.name)
                self._count += 1
                found.append(ListedFile(int(match[1]), worker_name(match[2]), Path(entry.path)))
        self._listed_ns[folder.name] = changed_ns if now_ns - changed_ns > _GRAIN_NS else -1
        return found


def _stamp(path: Path) -> tuple[int, int]:
    try:
        facts = os.lstat(path)
    except OSError:
        return 0, 0
    return (facts.st_ino, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else (0, 0)
