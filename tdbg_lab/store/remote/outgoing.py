"""What of a run directory is to be sent: a look at the files, and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.store.layout import entries, open_regular
from tdbg_lab.store.remote.keys import identity, is_file_key, is_live, sealed_key

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LocalFile", "read_between", "read_identity", "walk"]

_HEAD_BYTES = 65_536
_MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of a run directory."""

    key: str
    """Its name relative to the run, with slashes."""
    path: Path
    size: int
    modified_ns: int
    inode: int


def walk(run_path: Path) -> list[LocalFile]:
    """Files of a run that belong on the object store, small ones of the same kind in order of their name.

    Hidden and temporary files and links are left out, and a live segment that is sealed already.
    """
    found = {file.key: file for file in _walk(run_path, "", 0)}
    return [file for key, file in sorted(found.items()) if not (is_live(key) and sealed_key(key) in found)]


def read_identity(file: LocalFile) -> str | None:
    """Who a live segment is; None when its first message is not written yet, or it is gone."""
    try:
        descriptor = open_regular(file.path)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        return identity(opened.read(_HEAD_BYTES))


def read_between(path: Path, first: int, end: int) -> bytes:
    """Bytes of a file.

    Raises
    ------
    FileNotFoundError
        If they are not there: the file was sealed or replaced meanwhile.
    OSError
        If it cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(first)
        data = file.read(end - first)
    if len(data) != end - first:
        raise FileNotFoundError(2, "it was cut", path.name)
    return data


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[LocalFile]:
    for entry in entries(folder):
        key = prefix + entry.name
        if entry.name.endswith(".tmp") or not is_file_key(key):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _MAX_DEPTH:
                yield from _walk(Path(entry.path), f"{key}/", depth + 1)
        elif entry.is_file(follow_symlinks=False):
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError:  # gone since the listing
                continue
            yield LocalFile(key, Path(entry.path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
