"""Bands: the same bytes of many event files, which hold the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.store.smdebug.bounds import KEPT_FILE_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.store.smdebug.event_files import EventFiles
    from tdbg_lab.store.smdebug.index_file import IndexFile

__all__ = ["Bands"]


class _Band(NamedTuple):
    files: list[IndexFile]
    start: int
    """Offset in each file, bytes."""
    span: int
    """Bytes read of each file."""
    rows: NDArray[np.uint8]
    """What is kept of them, shape ``(n, span)`` or ``(n, 0)``."""
    room: NDArray[np.uint8]
    """The memory they are in: that of the next, if it fits."""


class Bands:
    """Reads one record of many files, and keeps some that follow. Not thread-safe.

    Files that smdebug wrote at different steps mostly differ in nothing but time, step and values, so
    that a record stands at the same place in all of them.
    """

    def __init__(self, events: EventFiles) -> None:
        self._events = events
        self._bands: dict[int, _Band] = {}
        """By the places the files share."""

    def rows(self, files: list[IndexFile], position: int, share: int) -> tuple[NDArray[np.uint8], int]:
        """Bytes of files that share their places, shape ``(n, width)``, and where a record begins in them.

        They hold until the next call, and are not to be changed.

        Where it follows on one that was read before, `share` bytes of each file are read and kept: who
        reads one tensor after the other so opens each file once for several of them.

        Raises
        ------
        OSError, ValueError
            If one of the files cannot be read, or is shorter than its index says.
        """
        places = files[0].places
        start, length = places.starts.item(position), places.lengths.item(position)
        size, band = length, self._bands.get(id(places))
        if band is not None and band.files == files:
            at = start - band.start
            if 0 <= at <= band.rows.shape[1] - length:
                return band.rows, at
            if 0 < at <= band.span:
                size = max(length, min(share, places.end - start))
        self._bands.pop(id(places), None)
        rows = self._room(band, len(files) * size).reshape(len(files), size)
        for row, file in zip(rows, files, strict=True):
            self._events.fill(row.data, file, start)
        kept = rows if size > length else rows[:, :0]
        self._bands[id(places)] = _Band(files, start, size, kept, rows.reshape(-1))
        return rows, 0

    def _room(self, band: _Band | None, size: int) -> NDArray[np.uint8]:
        """Memory for `size` bytes: that of a band that is done with, or new."""
        if band is not None and band.room.size >= size:
            return band.room[:size]
        if size + sum(other.room.size for other in self._bands.values()) > KEPT_FILE_BYTES:
            self._bands.clear()
        return np.empty(size, np.uint8)
