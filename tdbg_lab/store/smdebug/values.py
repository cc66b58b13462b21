"""Values of records, out of the event files of one store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import StoreError
from tdbg_lab.store.smdebug.bands import Bands
from tdbg_lab.store.smdebug.bounds import KEPT_FILE_BYTES
from tdbg_lab.store.smdebug.event_files import EventFiles
from tdbg_lab.store.smdebug.record import Content, Decoder, wall_time_ns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.store.smdebug.index_file import IndexFile

__all__ = ["Values", "reason"]

_FEW_FILES = 4
"""So many are read one by one."""
_HEAD_BYTES = 8192
"""Enough of a record for its type and shape, mostly."""


class Values:
    """Reads records and says which file was at fault. Not thread-safe.

    All methods that read raise StoreError when that cannot be done.
    """

    def __init__(self, path: Path) -> None:
        self._events = EventFiles(path)
        self._bands = Bands(self._events)
        self._decoder = Decoder()

    def add(self, file: IndexFile) -> int:
        """Count a file in; when its event file was written, ns since the epoch, 0 when it does not say."""
        self._events.add(file)
        return wall_time_ns(self._events.head(file)) if file.event_file is not None else 0

    def read(self, file: IndexFile, position: int) -> NDArray[Any]:
        """The value of one record; an array of the caller's own."""
        try:
            return self._decoder.array(self._events.record(file, position), file.layout.records[position])
        except (OSError, ValueError) as error:
            raise _failure(file, error) from error

    def column(self, files: Sequence[IndexFile], name: str) -> list[NDArray[Any] | None]:
        """The value of a tensor in each of some files, as `read`; None where it cannot be read."""
        alike: dict[tuple[int, int], list[int]] = {}
        for n, file in enumerate(files):
            alike.setdefault((id(file.places), file.layout.values[name]), []).append(n)
        found: list[NDArray[Any] | None] = [None] * len(files)
        share = KEPT_FILE_BYTES // max(len(files), 1)
        for (_, position), numbers in alike.items():
            group = [files[n] for n in numbers]
            values = self._together(group, position, name, share) or self._one_by_one(group, position)
            for n, value in zip(numbers, values, strict=True):
                found[n] = value
        return found

    def _together(
        self, files: list[IndexFile], position: int, name: str, share: int
    ) -> list[NDArray[Any]] | None:
        """Values that stand at the same place in all files; None when that is not worth it, or not so."""
        length = files[0].places.lengths.item(position)
        if len(files) < _FEW_FILES or length > share:
            return None
        try:
            rows, start = self._bands.rows(files, position, share)
            return self._decoder.block(rows, start, length, name)
        except (OSError, ValueError):  # one of them; the others can be read
            return None

    def _one_by_one(self, files: Sequence[IndexFile], position: int) -> list[NDArray[Any] | None]:
        found: list[NDArray[Any] | None] = []
        for file in files:
            try:
                found.append(self.read(file, position))
            except StoreError:
                found.append(None)
        return found

    def peek(self, file: IndexFile, positions: list[int]) -> list[NDArray[Any]]:
        """Values of several records of one file; read-only views where possible."""
        try:
            records = self._events.records(file, positions)
            names = (file.layout.records[position] for position in positions)
            pairs = zip(records, names, strict=True)
            return [self._decoder.array(record, name, copy=False) for record, name in pairs]
        except (OSError, ValueError) as error:
            raise _failure(file, error) from error

    def content(self, file: IndexFile, position: int) -> Content:
        """Type and shape of one record, mostly without reading its values."""
        name, length = file.layout.records[position], int(file.places.lengths[position])
        try:
            try:
                head = self._events.record(file, position, _HEAD_BYTES)
                return self._decoder.locate(head, name, length)
            except ValueError:  # long names take more
                return self._decoder.locate(self._events.record(file, position), name)
        except (OSError, ValueError) as error:
            raise _failure(file, error) from error


def _failure(file: IndexFile, error: Exception) -> StoreError:
    name = "/".join(file.event_file) if file.event_file else f"step {file.step}"
    return StoreError(f"The event file {name} cannot be read: {reason(error)}.")


def reason(error: Exception) -> str:
    """What went wrong, without a path: problems may reach a browser."""
    return (error.strerror or "it is not readable") if isinstance(error, OSError) else str(error)
