"""Records out of event files: each with one read, or from memory when a store is small and read again."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tdbg_lab.store.layout import open_regular, read_at, subfolder
from tdbg_lab.store.smdebug.bounds import KEPT_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tdbg_lab.store.smdebug.index_file import IndexFile

__all__ = ["EventFiles"]

_Read = TypeVar("_Read", bytes, int)
_SHORT = "the file is shorter than its index says"
_HEAD_BYTES = 21
"""The first bytes of a record, with the time."""


class _Ahead(NamedTuple):
    """A read in a file."""

    start: int
    """Offset in the file, bytes."""
    data: bytes
    """What is kept of it."""
    span: int
    """How many bytes were read."""


class EventFiles:
    """Event files below one folder. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events = str(path / "events")  # text: putting paths together would be half of the time
        self._checked: set[str] = set()
        """Folders that are no links."""
        self._kept: dict[tuple[str, str], bytes | None] = {}
        """Files that were read from; None after the first time."""
        self._read_ahead: dict[tuple[str, str] | None, _Ahead] = {}
        """The last read in each file."""
        self._total_bytes = 0

    def add(self, file: IndexFile) -> None:
        """Count a file's bytes: files are kept in memory only while all of them together are small."""
        if file.event_file is not None:
            self._total_bytes += file.places.end
            if self._total_bytes > KEPT_FILE_BYTES:
                self._kept.clear()

    def head(self, file: IndexFile) -> bytes:
        """The first bytes of a file's first record; nothing when the file is not there."""
        try:
            return self.read(file, int(file.places.starts.min()), _HEAD_BYTES)
        except (OSError, ValueError):  # still being copied; a later read says so
            return b""

    def record(self, file: IndexFile, position: int, limit: int | None = None) -> memoryview:
        """One record of a file, or its first `limit` bytes.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If it is shorter than its index says.
        """
        if limit is None or self._whole(file) is not None:
            data, start, length = self.place(file, position)
            return memoryview(data)[start : start + length]
        start, length = file.places.starts.item(position), min(file.places.lengths.item(position), limit)
        return memoryview(self.read(file, start, length))

    def place(self, file: IndexFile, position: int) -> tuple[bytes, int, int]:
        """Bytes that hold a record, and its offset and length in them; raises as `record`.

        Where a record follows on those that were read before, some more are read and kept: who reads
        one tensor after the other so opens each file once for several of them.
        """
        start, length = file.places.starts.item(position), file.places.lengths.item(position)
        kept = self._read_ahead.get(file.event_file)
        if kept is not None and 0 <= start - kept.start <= len(kept.data) - length:
            return kept.data, start - kept.start, length
        whole = self._whole(file)
        if whole is None:
            return self._ahead(file, start, length), 0, length
        if start + length > len(whole):
            raise ValueError(_SHORT)
        return whole, start, length

    def records(self, file: IndexFile, positions: list[int]) -> list[memoryview]:
        """Several records of one file, in one read where they lie together; raises as `record`."""
        if len(positions) < 2 or self._whole(file) is not None:
            return [self.record(file, position) for position in positions]
        starts, lengths = file.places.starts[positions], file.places.lengths[positions]
        first, last = int(starts.min()), int((starts + lengths).max())
        if last - first > 2 * int(lengths.sum()):
            return [self.record(file, position) for position in positions]
        data = memoryview(self.read(file, first, last - first))
        begins = (starts - first).tolist()
        return [data[at : at + n] for at, n in zip(begins, lengths.tolist(), strict=True)]

    def _ahead(self, file: IndexFile, start: int, length: int) -> bytes:
        """Bytes of a file from `start` on; more than `length` of them where they follow on others."""
        size, before = length, self._read_ahead.get(file.event_file)
        if before is not None and 0 < start - before.start <= before.span:
            share = KEPT_FILE_BYTES // len(self._read_ahead)
            size = max(length, min(share, file.places.end - start))
        data = self.read(file, start, size)
        self._read_ahead[file.event_file] = _Ahead(start, data if size > length else b"", size)
        return data

    def _whole(self, file: IndexFile) -> bytes | None:
        """A file's bytes when they are kept: from the second read on, if the whole store is small."""
        name = file.event_file
        if name is None or self._total_bytes > KEPT_FILE_BYTES:
            return None
        if name not in self._kept:
            self._kept[name] = None
            return None
        found = self._kept[name]
        if found is None:
            found = self._kept[name] = self.read(file, 0, file.places.end)
        return found

    def read(self, file: IndexFile, start: int, length: int) -> bytes:
        """Bytes of a file; raises as `record`."""
        with self._opened(file, start + length) as descriptor:
            data = read_at(descriptor, length, start)
            while len(data) < length:
                data += _some(read_at(descriptor, length - len(data), start + len(data)))
            return data

    def fill(self, room: memoryview, file: IndexFile, start: int) -> None:
        """Read bytes of a file into the room there is for them; raises as `record`."""
        with self._opened(file, start + len(room)) as descriptor:
            while n := len(room):
                n = _some(_read_into(room, descriptor, start))
                room, start = room[n:], start + n

    @contextmanager
    def _opened(self, file: IndexFile, end: int) -> Iterator[int]:
        """A file that has `end` bytes: that is looked at before memory is taken for them."""
        if file.event_file is None:
            raise FileNotFoundError(2, "No values were saved")
        folder, name = file.event_file
        if folder not in self._checked:
            self._check(folder)
        descriptor = open_regular(f"{self._events}/{folder}/{name}")
        try:
            if end > os.fstat(descriptor).st_size:
                raise ValueError(_SHORT)
            yield descriptor
        finally:
            os.close(descriptor)

    def _check(self, folder: str) -> None:
        if not self._checked and subfolder(self._path, "events") is None:
            raise FileNotFoundError(2, "No such folder")
        if not stat.S_ISDIR(os.lstat(f"{self._events}/{folder}").st_mode):
            raise FileNotFoundError(2, "No such folder")
        self._checked.add(folder)


def _read_into(room: memoryview, descriptor: int, start: int) -> int:
    """Read what fits into the room there is, at once where the system can; the number of bytes."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [room], start)
    data = read_at(descriptor, len(room), start)
    room[: len(data)] = data
    return len(data)


def _some(read: _Read) -> _Read:
    if not read:  # cut off since it was opened
        raise ValueError(_SHORT)
    return read
