"""Decoded columns of sealed segments, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from tdbg_lab.store.limits import COLUMN_CACHE_BYTES

CacheKey = tuple[str, "Groups | None", str]
"""Uid of the segment, row groups (None: all of them), column."""
Groups = tuple[int, int]
"""First and last of some row groups, both inclusive."""
Column = tuple[Any, ...]
"""One array, or lengths and values of a column of lists, or one table."""


class ColumnCache:
    """Least recently used out first. Thread-safe."""

    def __init__(self, limit_bytes: int = COLUMN_CACHE_BYTES) -> None:
        self._limit = limit_bytes
        self._columns: OrderedDict[CacheKey, Column] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: CacheKey) -> Column | None:
        """The column, or None when it is not here."""
        with self._lock:
            found = self._columns.get(key)
            if found is not None:
                self._columns.move_to_end(key)
            return found

    def put(self, key: CacheKey, column: Column) -> None:
        """Keep a column."""
        with self._lock:
            self._bytes += _size(column) - _size(self._columns.pop(key, ()))
            self._columns[key] = column
            while self._bytes > self._limit and len(self._columns) > 1:
                self._bytes -= _size(self._columns.popitem(last=False)[1])


def _size(column: Column) -> int:
    return sum(part.itemsize if getattr(part, "strides", None) == (0,) else part.nbytes for part in column)
