"""One sealed segment: its index from the footer, its columns on demand."""

from __future__ import annotations

import base64
import binascii
import json
import os
import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tdbg_lab.store.ipc import Header, parse_metadata, read_header
from tdbg_lab.store.layout import open_regular
from tdbg_lab.store.limits import (
    CACHED_FOOTERS,
    MAX_SEGMENT_FILE_BYTES,
    MAX_SEGMENT_ROWS,
    MAX_SEGMENT_VALUES,
)
from tdbg_lab.store.schema import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


class FooterCache:
    """Parsed footers, least recently used out first. Thread-safe."""

    def __init__(self, limit: int = CACHED_FOOTERS) -> None:
        self._limit = limit
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, uid: str) -> pq.FileMetaData | None:
        """The footer, or None when it is not here."""
        with self._lock:
            if uid in self._footers:
                self._footers.move_to_end(uid)
            return self._footers.get(uid)

    def put(self, uid: str, footer: pq.FileMetaData) -> None:
        """Keep a footer."""
        with self._lock:
            self._footers[uid] = footer
            while len(self._footers) > self._limit:
                self._footers.popitem(last=False)


class SealedFile:
    """A sealed segment. Opening reads the footer only; every read opens the file anew.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is not a segment of ours, or beyond bounds.
    """

    def __init__(self, path: Path, stream: str, footers: FooterCache | None = None) -> None:
        self.path = path
        self._stream = stream
        self._footers = footers or FooterCache(1)
        self._uid = ""
        with self._open() as file:
            footer = file.metadata
            self.rows: int = footer.num_rows
            self._check(file)
            sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        self.key_values: dict[bytes, bytes] = footer.metadata or {}
        self.header: Header = read_header(parse_metadata(self.key_values))
        self._uid = self.header.uid
        self._footers.put(self._uid, footer)
        self.group_starts: NDArray[np.int64] = np.cumsum([0, *sizes])
        """First row of each row group, and the number of rows, shape ``(G + 1,)``."""

    def array(self, key: bytes, dtype: str, width: int) -> NDArray[np.int64]:
        """An array of the index, shape ``(n, width)``.

        Raises
        ------
        ValueError
            If it is missing or broken.
        """
        try:
            data = base64.b64decode(self.key_values[key], validate=True)
        except (KeyError, binascii.Error) as error:
            raise ValueError(f"{self.path.name} has no index") from error
        return np.frombuffer(data, dtype).reshape(-1, width).astype(np.int64)

    def json(self, key: bytes) -> Any:
        """A JSON value of the index.

        Raises
        ------
        ValueError
            If it is missing or broken.
        """
        try:
            return json.loads(self.key_values[key])
        except (KeyError, RecursionError) as error:
            raise ValueError(f"{self.path.name} has no index") from error

    def extents(self, column: str) -> NDArray[np.int64] | None:
        """Least and greatest value of a column of integers in each row group, shape ``(G, 2)``.

        None when the file does not say so for each of them.

        Raises
        ------
        OSError
            If it cannot be read.
        """
        with self._open() as file:
            footer, place = file.metadata, file.schema_arrow.get_field_index(column)
        groups = (footer.row_group(i).column(place).statistics for i in range(footer.num_row_groups))
        found = [(s.min, s.max) for s in groups if s is not None and s.has_min_max]
        return np.array(found, np.int64) if len(found) == footer.num_row_groups else None

    def forget_index(self) -> None:
        """Let the index go once it is parsed."""
        self.key_values = {}

    def read_all(self) -> pa.Table:
        """The whole segment.

        Raises
        ------
        OSError
            If it cannot be read.
        ValueError
            If its content is broken.
        """
        return self._read(None, None)

    def read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Some columns of some row groups; raises as `read_all`."""
        return self._read([int(group) for group in groups], list(columns))

    def read_coded(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows, texts as dictionary arrays: that takes a fraction of decoding them.

        Raises as `read_all`.
        """
        return self._read(None, list(columns), coded=True)

    def _read(self, groups: list[int] | None, columns: list[str] | None, *, coded: bool = False) -> pa.Table:
        with self._open(coded=coded) as file:
            try:
                if groups is None or len(groups) == file.num_row_groups:
                    table = file.read(columns=columns, use_threads=False)
                else:
                    table = file.read_row_groups(groups, columns=columns, use_threads=False)
            except (pa.ArrowException, OSError) as error:  # Arrow says OSError for malformed pages
                raise ValueError(f"{self.path.name} is broken") from error
        return table.replace_schema_metadata(None)

    @contextmanager
    def _open(self, *, coded: bool = False) -> Iterator[pq.ParquetFile]:
        """The file, for a ``with`` block; its footer is parsed again only when it was forgotten."""
        footer = self._footers.get(self._uid) if self._uid else None
        descriptor = open_regular(self.path)
        try:
            texts = [each.name for each in SCHEMAS[self._stream] if each.type == pa.utf8()] if coded else []
            file = _parquet(descriptor, footer, texts)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path.name} is not a Parquet file") from error
        try:
            if self._uid and footer is None:
                if file.metadata.num_rows != self.rows:
                    raise OSError(f"{self.path.name} was replaced")
                self._footers.put(self._uid, file.metadata)
            yield file
        finally:
            file.close(force=True)  # by itself it leaves open what it did not open

    def _check(self, file: pq.ParquetFile) -> None:
        if not file.schema_arrow.remove_metadata().equals(SCHEMAS[self._stream]):
            raise ValueError(f"{self.path.name} has other columns than this version of tdbg-lab writes")
        footer = file.metadata
        if not 0 < self.rows <= MAX_SEGMENT_ROWS or footer.num_row_groups > MAX_SEGMENT_ROWS // 64:
            raise ValueError(f"{self.path.name} has more rows than a segment may have")
        bytes_ = sum(footer.row_group(g).total_byte_size for g in range(footer.num_row_groups))
        if bytes_ > MAX_SEGMENT_VALUES * 8:
            raise ValueError(f"{self.path.name} has more values than a segment may have")


def _parquet(descriptor: int, footer: pq.FileMetaData | None, coded: Sequence[str] = ()) -> pq.ParquetFile:
    """The file behind a descriptor, which is closed at once when it is none."""
    raw = os.fdopen(descriptor, "rb")
    try:
        if os.fstat(descriptor).st_size > MAX_SEGMENT_FILE_BYTES:
            raise ValueError("larger than a segment may be")  # noqa: TRY301 - the file is closed here
        file = pa.PythonFile(raw, mode="r")
        return pq.ParquetFile(file, metadata=footer, pre_buffer=False, read_dictionary=list(coded))
    except BaseException:
        raw.close()
        raise
