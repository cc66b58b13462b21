"""One sealed segment: its index from the footer, its columns on demand."""

from __future__ import annotations

import base64
import binascii
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tdbg_lab.store.ipc import parse_metadata
from tdbg_lab.store.layout import open_regular
from tdbg_lab.store.limits import MAX_SEGMENT_FILE_BYTES, MAX_SEGMENT_ROWS, MAX_SEGMENT_VALUES
from tdbg_lab.store.schema import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray


class SealedFile:
    """A sealed segment. Opening reads the footer only; every read opens the file anew.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is not a segment of ours, or beyond bounds.
    """

    def __init__(self, path: Path, stream: str) -> None:
        self.path = path
        self._stream = stream
        with self._open() as file:
            footer = file.metadata
            schema = file.schema_arrow
            self._check(footer, schema)
            self.metadata: dict[str, Any] = parse_metadata(schema.metadata)
            self.key_values: dict[bytes, bytes] = dict(schema.metadata or {})
            self.rows: int = footer.num_rows
            sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        self.group_starts: NDArray[np.int64] = np.cumsum([0, *sizes])
        """First row of each row group, and the number of rows, shape ``(G + 1,)``."""

    def array(self, key: bytes, dtype: str, width: int) -> NDArray[Any]:
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
        return np.frombuffer(data, dtype).reshape(-1, width)

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
        return self._read(list(groups), list(columns))

    def _read(self, groups: list[int] | None, columns: list[str] | None) -> pa.Table:
        with self._open() as file:
            try:
                if groups is None:
                    table = file.read(columns=columns, use_threads=False)
                else:
                    table = file.read_row_groups(groups, columns=columns, use_threads=False)
            except pa.ArrowException as error:
                raise ValueError(f"{self.path.name} is broken") from error
        return table.replace_schema_metadata(None)

    def _open(self) -> pq.ParquetFile:
        descriptor = open_regular(self.path)
        try:
            if os.fstat(descriptor).st_size > MAX_SEGMENT_FILE_BYTES:
                raise ValueError(f"{self.path.name} is larger than a segment may be")
            source = pa.PythonFile(os.fdopen(descriptor, "rb"), mode="r")
            descriptor = -1
            return pq.ParquetFile(source)
        except pa.ArrowException as error:
            raise ValueError(f"{self.path.name} is not a Parquet file") from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _check(self, footer: pq.FileMetaData, schema: pa.Schema) -> None:
        if not schema.equals(SCHEMAS[self._stream]):
            raise ValueError(f"{self.path.name} has other columns than this version of tdbg-lab writes")
        if footer.num_rows > MAX_SEGMENT_ROWS or footer.num_row_groups > MAX_SEGMENT_ROWS // 64:
            raise ValueError(f"{self.path.name} has more rows than a segment may have")
        for column in range(footer.num_columns):
            groups = range(footer.num_row_groups)
            if sum(footer.row_group(g).column(column).num_values for g in groups) > MAX_SEGMENT_VALUES:
                raise ValueError(f"{self.path.name} has more values than a segment may have")
