"""Records out of event files: each with one read, or from memory when a store is small and read again."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.store.layout import open_regular, subfolder
from tdbg_lab.store.smdebug.bounds import KEPT_FILE_BYTES

if TYPE_CHECKING:
    from tdbg_lab.store.smdebug.index_file import IndexFile

__all__ = ["EventFiles"]

_HEAD_BYTES = 21
"""The first bytes of a record, with the time."""


class EventFiles:
    """Event files below one folder. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events = str(path / "events")  # text: putting paths together would be half of the time
        self._checked: set[str] = set()
        """Folders that are no links."""
        self._kept: dict[tuple[str, str], bytes | None] = {}
        """Files that were read from; None after the first time."""
        self._read_ahead: dict[tuple[str, str], tuple[int, bytes, int]] = {}
        """Offset of the last read in each file, the bytes kept of it, and how many were read."""
        self._total_bytes = 0

    def add(self, file: IndexFile) -> None:
        """Count a file's bytes: files are kept in memory only while all of them together are small."""
        if file.event_file is not None:
            self._total_bytes += int((file.starts + file.lengths).max())
            if self._total_bytes > KEPT_FILE_BYTES:
                self._kept.clear()

    def head(self, file: IndexFile) -> bytes:
        """The first bytes of a file's first record; nothing when the file is not there."""
        try:
            return self._read(file, int(file.starts.min()), _HEAD_BYTES)
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
        start, length = int(file.starts[position]), int(file.lengths[position])
        whole = self._whole(file)
        if whole is not None:
            record = memoryview(whole)[start : start + length]
        elif limit is None:
            record = self._ahead(file, start, length)
        else:
            length = min(length, limit)
            record = memoryview(self._read(file, start, length))
        if len(record) < length:
            raise ValueError("the file is shorter than its index says")
        return record

    def records(self, file: IndexFile, positions: list[int]) -> list[memoryview]:
        """Several records of one file, in one read where they lie together; raises as `record`."""
        if len(positions) < 2 or self._whole(file) is not None:
            return [self.record(file, position) for position in positions]
        starts, lengths = file.starts[positions], file.lengths[positions]
        first, last = int(starts.min()), int((starts + lengths).max())
        if last - first > 2 * int(lengths.sum()):
            return [self.record(file, position) for position in positions]
        data = memoryview(self._read(file, first, last - first))
        if len(data) < last - first:
            raise ValueError("the file is shorter than its index says")
        begins = (starts - first).tolist()
        return [data[at : at + n] for at, n in zip(begins, lengths.tolist(), strict=True)]

    def _ahead(self, file: IndexFile, start: int, length: int) -> memoryview:
        """Bytes of a file; where they follow on those that were read before, some more are read and kept.

        Who reads one tensor after the other so opens each file once for several of them.
        """
        name = file.event_file
        if name is None:
            raise FileNotFoundError(2, "No values were saved")
        base, data, span = self._read_ahead.get(name, (-1, b"", 0))
        at = start - base
        if base >= 0 and at >= 0 and at + length <= len(data):
            return memoryview(data)[at : at + length]
        size = length
        if base >= 0 and 0 < at <= span:
            share = KEPT_FILE_BYTES // len(self._read_ahead)
            size = max(length, min(share, int((file.starts + file.lengths).max()) - start))
        data = self._read(file, start, size)
        self._read_ahead[name] = (start, data if size > length else b"", size)
        return memoryview(data)[:length]

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
            found = self._kept[name] = self._read(file, 0, int((file.starts + file.lengths).max()))
        return found

    def _read(self, file: IndexFile, start: int, length: int) -> bytes:
        if file.event_file is None:
            raise FileNotFoundError(2, "No values were saved")
        folder, name = file.event_file
        if folder not in self._checked:
            self._check(folder)
        descriptor = open_regular(Path(f"{self._events}/{folder}/{name}"))
        try:
            if start + length > os.fstat(descriptor).st_size:  # before memory is taken for it
                raise ValueError("the file is shorter than its index says")
            data = os.pread(descriptor, length, start)
            while len(data) < length and (
                more := os.pread(descriptor, length - len(data), start + len(data))
            ):
                data += more
            return data
        finally:
            os.close(descriptor)

    def _check(self, folder: str) -> None:
        if not self._checked and subfolder(self._path, "events") is None:
            raise FileNotFoundError(2, "No such folder")
        if not stat.S_ISDIR(os.lstat(f"{self._events}/{folder}").st_mode):
            raise FileNotFoundError(2, "No such folder")
        self._checked.add(folder)
