"""What a look at a store tells without reading it: for lists of runs, and who a run is."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import RunStatus
from tdbg_lab.store.info import RunInfo, with_edits
from tdbg_lab.store.layout import entries, open_regular, subfolder
from tdbg_lab.store.smdebug.bounds import SILENCE_NS
from tdbg_lab.store.smdebug.collection import read_collections
from tdbg_lab.store.smdebug.folder import CLAIM, END, Shelf, list_collections, modified_ns, shelf_of
from tdbg_lab.store.smdebug.naming import framework_of
from tdbg_lab.store.smdebug.profile import began_ns
from tdbg_lab.store.smdebug.record import wall_time_ns

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Survey", "stamp", "status_of", "store_info", "survey"]

_GENERIC = frozenset({"debug-output", "profiler-output", "tensors", "output", "profiler"})
"""Names of folders that say nothing: SageMaker calls all stores so."""


@dataclass(frozen=True, slots=True)
class Survey:
    """First and last sign of life of a store."""

    created_ns: int
    last_write_ns: int
    last_step: int
    """Global step; -1 when there is none."""
    status: RunStatus
    info: RunInfo


def survey(path: Path) -> Survey:
    """Look at the first and the last index file (or event file, without index), and at the markers."""
    first, last = _ends(path)
    created_ns = _written_ns(path, first) or modified_ns(path / CLAIM) or _began_ns(path)
    last_write_ns = _written_ns(path, last) or _modified_below(path)
    ended, claimed = (path / END).is_file(), (path / CLAIM).is_file()
    status = status_of(ended=ended, claimed=claimed, last_write_ns=last_write_ns)
    info = with_edits(
        path,
        RunInfo(
            id=hashlib.sha256(os.fsencode(path)).hexdigest()[:32],
            name=f"{path.parent.name}/{path.name}" if path.name in _GENERIC else path.name,
            created_ns=created_ns,
            ended_ns=max(last_write_ns, created_ns) if status is not RunStatus.RUNNING else None,
            status=status,
            framework=_framework(path),
            capture={"store": "smdebug"},
        ),
    )
    step = -1 if last is None else int(last.name.partition("_")[0])
    return Survey(created_ns, last_write_ns, step, status, info)


def store_info(path: Path) -> RunInfo:
    """A store described as a run."""
    return survey(path).info


def status_of(*, ended: bool, claimed: bool, last_write_ns: int) -> RunStatus:
    """Where a store stands.

    smdebug marks the end only outside of SageMaker, and its claim only with one worker: what is marked
    neither way and has been silent for long has ended; what is still claimed then, has crashed.
    """
    if ended:
        return RunStatus.FINISHED
    if time.time_ns() - last_write_ns < SILENCE_NS:
        return RunStatus.RUNNING
    return RunStatus.CRASHED if claimed else RunStatus.FINISHED


def stamp(path: Path) -> tuple[int, ...]:
    """Changes whenever something is added to a store."""
    folders = _folders(path, shelf_of(path))
    watched = [path, path / END, path / CLAIM, *folders[-1:]]
    return tuple(modified_ns(each) for each in watched)


def _ends(path: Path) -> tuple[Path | None, Path | None]:
    """First and last file."""
    shelf = shelf_of(path)
    folders = _folders(path, shelf)
    first, last = (
        [file for folder in ends for file in _files(folder, shelf)] for ends in (folders[:1], folders[-1:])
    )
    return min(first, default=None), max(last, default=None)


def _folders(path: Path, shelf: Shelf) -> list[Path]:
    top = subfolder(path, shelf.name)
    if top is None:
        return []
    names = [entry.name for entry in entries(top) if shelf.folder.fullmatch(entry.name)]
    folders = [subfolder(top, name) for name in sorted(names)]
    return [folder for folder in folders if folder is not None]


def _files(folder: Path, shelf: Shelf) -> list[Path]:
    return [folder / entry.name for entry in entries(folder) if shelf.file.fullmatch(entry.name)]


def _written_ns(path: Path, listed: Path | None) -> int:
    """When a step was written, by its event file; the listed file's own time when that does not tell."""
    if listed is None:
        return 0
    folder = subfolder(path / "events", listed.name.partition("_")[0])
    try:
        if folder is None or subfolder(path, "events") is None:
            return modified_ns(listed)
        with os.fdopen(open_regular(folder / f"{listed.stem}.tfevents"), "rb") as file:
            return wall_time_ns(file.read(21)) or modified_ns(listed)
    except OSError:
        return modified_ns(listed)


def _began_ns(path: Path) -> int:
    """When the job of a profiler folder began; when a folder was changed, where that is not told."""
    try:
        return began_ns(path) or _modified_below(path)
    except OSError:  # a file was renamed meanwhile
        return _modified_below(path)


def _modified_below(path: Path) -> int:
    """Newest change of a folder and of what it holds."""
    return max([modified_ns(path), *(modified_ns(path / entry.name) for entry in entries(path))])


def _framework(path: Path) -> str:
    for file in list(list_collections(path).values())[:1]:
        try:
            return framework_of(read_collections(file)[0])
        except (OSError, ValueError):
            continue
    return ""
