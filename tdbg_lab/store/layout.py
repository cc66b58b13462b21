"""Names in a run directory, and how files there are listed, opened and replaced safely.

Symbolic links inside a run directory are not followed; only regular files are opened.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import DeniedError
from tdbg_lab.store.file_moves import patiently, replace_file, sync_file
from tdbg_lab.store.limits import MAX_JSON_BYTES, MAX_RANKS, MAX_SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAMS = ("stats", "spans", "system")
LIVE = "arrows"
SEALED = "parquet"

_RANK = re.compile(r"rank-(\d{5})")
_SEGMENT = re.compile(r"(stats|spans|system)-(\d{6,9})\.(arrows|parquet)")
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_READ_FLAGS = os.O_RDONLY | _NO_LINKS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_SHORT_PAUSES_S = (0.001, 0.005, 0.02)
CLOCK_GRAIN_NS = 10**8
"""Time within which a file system may give two changes the same time, and more."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One segment on disk; `sealed` wins when both forms are there."""

    stream: str
    number: int
    sealed: bool
    path: Path


def rank_path(run_path: Path, rank: int) -> Path:
    """Directory of one rank."""
    return run_path / f"rank-{rank:05d}"


def segment_path(directory: Path, stream: str, number: int, form: str) -> Path:
    """File of segment `number` of `stream` in `form` (`LIVE` or `SEALED`)."""
    return directory / f"{stream}-{number:06d}.{form}"


def list_ranks(run_path: Path) -> list[tuple[int, Path]]:
    """Ranks of a run and their directories, ascending; empty when there are none."""
    found = []
    for entry in entries(run_path):
        match = _RANK.fullmatch(entry.name)
        if match and entry.is_dir(follow_symlinks=False):
            found.append((int(match[1]), Path(entry.path)))
    return sorted(found)[:MAX_RANKS]


def list_segments(directory: Path) -> dict[str, list[SegmentFile]]:
    """Segments of each stream, ascending by number; a sealed one hides its live form.

    A segment that is sealed while the directory is read may be seen under neither of its names. So a
    directory that has changed just now is read twice: a segment is sealed once.
    """
    found: dict[str, dict[int, SegmentFile]] = {stream: {} for stream in STREAMS}
    before_ns = modified_ns(directory)
    _add_segments(directory, found)
    after_ns = modified_ns(directory)
    if after_ns != before_ns or time.time_ns() - after_ns < CLOCK_GRAIN_NS:
        _add_segments(directory, found)
    return {stream: [segments[n] for n in sorted(segments)] for stream, segments in found.items()}


def _add_segments(directory: Path, found: dict[str, dict[int, SegmentFile]]) -> None:
    for entry in entries(directory):
        match = _SEGMENT.fullmatch(entry.name)
        if not match or not entry.is_file(follow_symlinks=False):
            continue
        stream, number, sealed = match[1], int(match[2]), match[3] == SEALED
        known = found[stream].get(number)
        if (known is None or sealed) and len(found[stream]) < MAX_SEGMENTS:
            found[stream][number] = SegmentFile(stream, number, sealed, Path(entry.path))


def modified_ns(path: Path) -> int:
    """When a file or directory was changed last; 0 when it is not there."""
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


def entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    """What a directory holds; nothing when it cannot be listed."""
    try:
        with os.scandir(directory) as found:
            yield from found
    except OSError:  # deleted, not a directory, not readable: nothing to list
        return


def subfolder(run_path: Path, name: str) -> Path | None:
    """A folder of a run, or None when there is none or a link stands in its place."""
    path = run_path / name
    try:
        return path if stat.S_ISDIR(path.lstat().st_mode) else None
    except OSError:
        return None


def make_subfolder(run_path: Path, name: str) -> Path:
    """A folder of a run, made when it is missing: who may write into the run may write into it, too.

    Whatever the umask of this process, which may be another user's than the training.

    Raises
    ------
    OSError
        If it cannot be made, or a link stands in its place.
    """
    path = run_path / name
    if subfolder(run_path, name) is None:
        path.mkdir(exist_ok=True)
        _open_to_writers(path)
    if path.is_symlink():
        raise NotADirectoryError(20, f"{name} is a link")
    return path


def open_regular(path: Path | str) -> int:
    """File descriptor for reading a regular file.

    Raises
    ------
    OSError
        If it is missing, a symbolic link, or not a regular file.
    """
    if not _NO_LINKS and Path(path).is_symlink():
        raise OSError(f"{Path(path).name} is a symbolic link")
    descriptor = patiently(lambda: os.open(path, _READ_FLAGS), _SHORT_PAUSES_S)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{Path(path).name} is not a regular file")
    return descriptor


def read_at(descriptor: int, length: int, start: int) -> bytes:
    """At most `length` bytes of a file from `start` on; do not count on where it stands afterwards."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, length)


def read_bytes(path: Path, limit: int) -> bytes:
    """Content of a regular file of at most `limit` bytes.

    Raises
    ------
    OSError
        If it cannot be opened or is larger.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"{path.name} is larger than {limit} bytes")
    return data


def read_json(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """A JSON object.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is not a JSON object.
    """
    try:
        value = json.loads(read_bytes(path, limit))
    except (RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not valid JSON") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} does not hold a JSON object")  # noqa: TRY004 - the content is wrong
    return value


def write_json(path: Path, value: dict[str, Any], *, shared: bool = False) -> None:
    """Write `value` so that a reader sees the old file or the new one, never a part.

    Parameters
    ----------
    shared
        Another user may be who reads it, the owner of a training who is asked for something, say: whoever
        may list the folder may read the file, too, whatever the umask of this process.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    write_whole(path, _encoded(value), shared=shared)


def write_over(path: Path, value: dict[str, Any]) -> bool:
    """Write `value` into the blocks that a file has: a disk that is full has no others.

    Unlike with `write_json`, a reader may see a part of it for a moment.

    Returns
    -------
    bool
        False where it is too long for them, or cannot be written.
    """
    data = _encoded(value)
    try:
        with path.open("r+b") as file:
            facts = os.fstat(file.fileno())
            if len(data) > 512 * getattr(facts, "st_blocks", 0):  # Windows does not tell
                return False
            file.write(data.ljust(facts.st_size))
    except OSError:
        return False
    return True


def _encoded(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")  # of a name that is no UTF-8: \udce9


def write_whole(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("wb") as file:
            if shared:
                open_to_readers(file.fileno(), path.parent)
            file.write(data)
            file.flush()
            sync_file(file.fileno())
        replace_file(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise DeniedError.of(f"Cannot write {path.name}", error) from error


def _open_to_writers(folder: Path) -> None:
    """Give a new folder the rights of the one that it is in."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS)
        try:
            os.fchmod(descriptor, stat.S_IMODE(folder.parent.stat().st_mode))
        finally:
            os.close(descriptor)


def open_to_readers(descriptor: int, folder: Path) -> None:
    """Let the group and the others read a new file as they may read its folder, whatever the umask."""
    with contextlib.suppress(OSError, AttributeError):
        facts = folder.stat()
        with contextlib.suppress(OSError):  # a group that we are no member of
            os.fchown(descriptor, -1, facts.st_gid)
        os.fchmod(descriptor, 0o600 | facts.st_mode & 0o044)
