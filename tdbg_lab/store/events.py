"""Reading spans and samples: tables of the segments, by time."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.parquet import FooterCache, SealedFile
from tdbg_lab.store.schema import SCHEMAS
from tdbg_lab.store.seal import EXTENT_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.store.cache import ColumnCache

__all__ = ["TIME", "LiveEvents", "SealedEvents", "between", "moved"]

TIME = {"spans": "start_ns", "system": "time_ns"}
_LACKING = "a row lacks a value"


class LiveEvents:
    """A live segment of spans or samples, held in memory."""

    is_sealed = False

    def __init__(self, path: Path, stream: str) -> None:
        self.path = path
        self._stream = stream
        self._reader = BatchReader(path, SCHEMAS[stream])
        self._batches: list[pa.RecordBatch] = []

    @property
    def problem(self) -> str | None:
        """Why reading stopped, or None."""
        return self._reader.problem

    def poll(self) -> bool:
        """Read what is new; True when there was something.

        Raises
        ------
        OSError
            If the file is gone.
        """
        batches = [batch for batch in self._reader.read() if batch.num_rows]
        whole = list(takewhile(_is_whole, batches))
        if len(whole) < len(batches):
            self._reader.problem = f"{self.path.name}: {_LACKING}"
        self._batches += whole
        return bool(whole)

    def read(self, first_ns: int, last_ns: int) -> pa.Table:
        """Rows whose time lies between, both inclusive."""
        return between(self.whole(), TIME[self._stream], first_ns, last_ns)

    def whole(self) -> pa.Table:
        """All rows so far."""
        return pa.Table.from_batches(self._batches, SCHEMAS[self._stream])

    def coded(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows so far."""
        return self.whole().select(list(columns))

    @property
    def last_ns(self) -> int | None:
        """The latest time; None while there is no row."""
        if not self._batches:
            return None
        return int(pc.max(self._batches[-1].column(TIME[self._stream])).as_py())


class SealedEvents:
    """A sealed segment of spans or samples.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is not a segment of ours.
    """

    is_sealed = True

    def __init__(self, path: Path, stream: str, cache: ColumnCache, footers: FooterCache) -> None:
        self.path = path
        self.problem: str | None = None
        self._stream = stream
        self._cache = cache
        self._file = SealedFile(path, stream, footers)
        self._extents: NDArray[np.int64] | None = None
        """First and last time of each row group, once a part of the segment was asked for."""
        try:
            self._first, self._last = (int(ns) for ns in self._file.json(EXTENT_KEY))
            self._file.forget_index()
        except (TypeError, OverflowError) as error:
            raise ValueError(f"{path.name} has a broken index") from error

    def poll(self) -> bool:
        """A sealed segment does not change."""
        return False

    def read(self, first_ns: int, last_ns: int) -> pa.Table:
        """Rows whose time lies between, both inclusive; raises as `SealedFile.read_all`."""
        if self._last < first_ns or self._first > last_ns:
            return SCHEMAS[self._stream].empty_table()
        time = TIME[self._stream]
        key = (self._file.header.uid, None, "")
        column = self._cache.get(key)
        if column is None:
            groups = self._groups(first_ns, last_ns)
            if groups is not None and 2 * len(groups) <= len(self._file.group_starts):
                table = self._checked(self._file.read(groups, SCHEMAS[self._stream].names))
                return between(table, time, first_ns, last_ns)
            column = (self._checked(self._file.read_all()),)
            self._cache.put(key, column)
        return between(column[0], time, first_ns, last_ns)

    def _groups(self, first_ns: int, last_ns: int) -> list[int] | None:
        """Row groups with rows between; None when the file does not say which they are."""
        if self._extents is None:
            self._extents = self._file.extents(TIME[self._stream])
        if self._extents is None:
            return None
        low, high = self._extents.T
        return np.flatnonzero((high >= first_ns) & (low <= last_ns)).tolist()

    def coded(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows, texts as dictionary arrays; raises as `SealedFile.read_all`."""
        return self._checked(self._file.read_coded(columns))

    def _checked(self, table: pa.Table) -> pa.Table:
        if not _is_whole(table):
            raise ValueError(f"{self.path.name}: {_LACKING}")
        return table

    @property
    def last_ns(self) -> int | None:
        """The latest time."""
        return self._last


def _is_whole(rows: pa.Table | pa.RecordBatch) -> bool:
    """Whether each row has a value in every column, as it is written."""
    return not any(column.null_count for column in rows.columns)


def moved(table: pa.Table, stream: str, ahead_ns: int) -> pa.Table:
    """The rows of a machine whose clock is ahead, by the clock of the others."""
    if not ahead_ns:
        return table
    name = TIME[stream]
    time_ns = pc.subtract(table[name], pa.scalar(ahead_ns, pa.int64()))
    return table.set_column(table.column_names.index(name), table.schema.field(name), time_ns)


def between(table: pa.Table, column: str, first_ns: int, last_ns: int) -> pa.Table:
    """Rows whose time lies between, both inclusive."""
    time_ns = table[column]
    bounds = np.clip([first_ns, last_ns], -(2**63), 2**63 - 1)
    inside = pc.and_(
        pc.greater_equal(time_ns, pa.scalar(int(bounds[0]), pa.int64())),
        pc.less_equal(time_ns, pa.scalar(int(bounds[1]), pa.int64())),
    )
    return table.filter(inside)
