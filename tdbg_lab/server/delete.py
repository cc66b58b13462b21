"""Delete a run: its own files only, and never over a symbolic link."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConflictError, DeniedError, NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.server.line import read_line
from tdbg_lab.server.roots import require_inside, require_no_way_out
from tdbg_lab.store.file_moves import patiently
from tdbg_lab.store.source import is_foreign

if TYPE_CHECKING:
    from tdbg_lab.server.roots import Entry

__all__ = ["delete_run"]

OWN_FOLDERS = ("findings", "control", "profile", "reports")
_BY_DESCRIPTOR = shutil.rmtree.avoids_symlink_attacks
"""Whether files can be removed from a folder that is open, wherever its path leads by now."""
OWN_FILES = ("edits.json", "run.json")
"""``run.json`` last: as long as it is there, an interrupted deletion can be repeated."""


def delete_run(entry: Entry) -> None:
    """Remove what tdbg-lab wrote into a run directory, and the directory when nothing else is in it.

    Somebody may have made a project folder a run directory: foreign files stay.

    Raises
    ------
    ConflictError
        When the run is running, or on an object store.
    NotFoundError
        When the directory is no run.
    AccessError
        When a symbolic link is on the way to it or in it.
    StoreError
        When a file cannot be removed.
    """
    if entry.root.remote is not None:
        raise ConflictError(
            f"The run {entry.relative!r} is on an object store; delete it there, with the store's own tools."
        )
    require_inside(entry)
    require_no_way_out(entry)
    line = read_line(entry, None)
    if line is None:
        raise NotFoundError(f"{entry.relative!r} is not a run directory.")
    if is_foreign(entry.directory):
        raise ConflictError(
            f"{line.name!r} was recorded by SageMaker Debugger, not by tdbg-lab: delete its folder yourself."
        )
    if line.status is RunStatus.RUNNING:
        raise ConflictError(f"The run {line.name!r} is running; stop it before you delete it.")
    try:
        _remove(entry)
    except OSError as error:
        raise DeniedError.of(f"The run {line.name!r} cannot be deleted", error) from error


def _remove(found: Entry) -> None:
    """Remove what is ours from the folder that was checked: a link in its place would lead elsewhere.

    Who shares a root with others may put one there at any time.
    """
    folder = _open(found) if _BY_DESCRIPTOR else None
    where = Path() if _BY_DESCRIPTOR else found.directory
    try:
        for name in os.listdir(found.directory if folder is None else folder):  # noqa: PTH208
            if name in OWN_FOLDERS or name.startswith("rank-"):
                _remove_folder(where / name, folder)
            elif name.startswith(".") and name.endswith(".tmp"):
                _remove_file(where / name, folder)
        for name in OWN_FILES:
            _remove_file(where / name, folder)
    finally:
        if folder is not None:
            os.close(folder)
    with contextlib.suppress(OSError):  # foreign files are left
        found.directory.rmdir()


def _open(found: Entry) -> int:
    """The run directory, by way of the folders above it, none of which is a link."""
    folder = os.open(found.root.path, os.O_RDONLY | os.O_DIRECTORY)
    for part in Path(found.relative).parts:
        above = folder
        try:
            folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return folder


def _remove_folder(path: Path, folder: int | None) -> None:
    if stat.S_ISDIR(os.lstat(path, dir_fd=folder).st_mode):
        patiently(lambda: shutil.rmtree(path, dir_fd=folder))


def _remove_file(path: Path, folder: int | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        patiently(lambda: os.unlink(path, dir_fd=folder))
