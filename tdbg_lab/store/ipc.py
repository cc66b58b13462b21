"""Reading a growing Arrow IPC stream: complete record batches, each once, from untrusted bytes."""

from __future__ import annotations

import json
import os
import struct
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tdbg_lab.store.layout import open_regular, read_at
from tdbg_lab.store.limits import (
    FORMAT,
    MAX_BATCH_BYTES,
    MAX_METADATA_BYTES,
    MAX_READ_BYTES,
    MAX_SEGMENT_FILE_BYTES,
)
from tdbg_lab.store.schema import METADATA_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_PREFIX = struct.Struct("<Ii")
_CONTINUATION = 0xFFFFFFFF
_HEADER_BYTES = 16 * 1024
"""Enough for the header of most messages."""
_MAX_MESSAGES = 10_000
"""Messages that are passed over in search of the last one: more than any segment of ours has."""


class _BadStreamError(Exception):
    """The bytes are not a stream of ours."""


class BatchReader:
    """Reads one live segment from where it left off.

    A torn tail is waited for. Bytes that cannot be ours end the reading and set `problem`.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._expected = schema
        self._schema: pa.Schema | None = None
        self._offset = 0
        self._head = b""
        self.metadata: dict[str, Any] = {}
        """What the writer said about the segment; empty until its first bytes are there."""
        self.problem: str | None = None
        self.ended = False
        """The writer closed the segment properly."""

    def read(self) -> list[pa.RecordBatch]:
        """The batches completed since the last call.

        Raises
        ------
        OSError
            If the file cannot be opened (deleted, or sealed meanwhile), or another one took its place.
        """
        if self.problem:
            return []
        batches: list[pa.RecordBatch] = []
        descriptor = open_regular(self._path)
        try:
            self._read_all(descriptor, batches)
        except (_BadStreamError, pa.ArrowException, struct.error, ValueError) as error:
            self.problem = (
                f"{self._path.name}: {str(error).splitlines()[0][:200] if str(error) else 'garbage'}"
            )
        finally:
            os.close(descriptor)
        return batches

    def check(self) -> None:
        """Learn who wrote the segment, without taking batches from it.

        Raises
        ------
        OSError
            If it is gone, or another one took its place.
        """
        descriptor = open_regular(self._path)
        try:
            self._check_head(descriptor)
            if not self._head:
                data = read_at(descriptor, _PREFIX.size + MAX_METADATA_BYTES, 0)
                size = _message_size(data, 0)
                if size is not None and size <= len(data):
                    self._take(pa.py_buffer(data).slice(0, size), [])
                    self._offset = size
        except (_BadStreamError, pa.ArrowException, struct.error, ValueError) as error:
            self._fail(error)
        finally:
            os.close(descriptor)

    @property
    def offset(self) -> int:
        """Where the next message begins, bytes."""
        return self._offset

    def take(self, data: bytes, batches: list[pa.RecordBatch]) -> None:
        """Decode one whole batch of the segment.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            self._take(pa.py_buffer(data), batches)
        except (_BadStreamError, pa.ArrowException, struct.error) as error:
            raise ValueError(str(error)) from error

    def _fail(self, error: Exception) -> None:
        lines = str(error).splitlines() or ["garbage"]
        self.problem = f"{self._path.name}: {lines[0][:200]}"

    def _check_head(self, descriptor: int) -> None:
        if self._head and read_at(descriptor, len(self._head), 0) != self._head:
            raise OSError(f"{self._path.name} was replaced")

    def _read_all(self, descriptor: int, batches: list[pa.RecordBatch]) -> None:
        size = os.fstat(descriptor).st_size
        self._check_head(descriptor)
        if size > MAX_SEGMENT_FILE_BYTES:
            raise _BadStreamError(f"{size} bytes are more than a segment may have")
        wanted = MAX_READ_BYTES
        while self._offset < size and not self.ended:
            data = read_at(descriptor, min(wanted, size - self._offset), self._offset)
            used, needed = self._parse(data, batches)
            self._offset += used
            if self._offset + needed > size or (used == 0 and needed == 0):
                return  # a torn tail: not there yet
            wanted = max(needed, MAX_READ_BYTES)

    def _parse(self, data: bytes, batches: list[pa.RecordBatch]) -> tuple[int, int]:
        """Take complete messages from `data`; bytes used, and bytes of the next message (0: unknown)."""
        buffer = pa.py_buffer(data)
        at = 0
        while True:
            total = _message_size(data, at)
            if total is None or at + total > len(data):
                return at, total or 0
            if total == _PREFIX.size:
                self.ended = True
                return at + total, 0
            self._take(buffer.slice(at, total), batches)
            at += total

    def _take(self, buffer: pa.Buffer, batches: list[pa.RecordBatch]) -> None:
        try:
            self._decode(buffer, batches)
        except OSError as error:  # Arrow's word for a malformed message
            raise _BadStreamError(str(error)) from error

    def _decode(self, buffer: pa.Buffer, batches: list[pa.RecordBatch]) -> None:
        if self._schema is None:
            schema = pa.ipc.read_schema(buffer)
            if not schema.equals(self._expected):
                raise _BadStreamError("has other columns than this version of tdbg-lab writes")
            self.metadata = parse_metadata(schema.metadata)
            self._schema = schema
            self._head = buffer.to_pybytes()
            return
        batch = pa.ipc.read_record_batch(buffer, self._schema)
        batch.validate(full=True)
        batches.append(batch)


def newest_batches(path: Path, schema: pa.Schema, count: int) -> list[pa.RecordBatch]:
    """The last `count` complete batches of a live segment; of the others only the headers are read.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not a stream of ours, or too large to be looked at in passing.
    """
    reader = BatchReader(path, schema)
    reader.check()
    descriptor = open_regular(path)
    try:
        places: deque[tuple[int, int]] = deque(maxlen=count)
        for place in _messages(descriptor, reader.offset):
            places.append(place)
        found = [read_at(descriptor, size, at) for at, size in places if size <= MAX_READ_BYTES]
    except (_BadStreamError, struct.error) as error:
        raise ValueError(str(error)) from error
    finally:
        os.close(descriptor)
    batches: list[pa.RecordBatch] = []
    for data in found:
        reader.take(data, batches)
    return batches


def _messages(descriptor: int, at: int) -> Iterator[tuple[int, int]]:
    """Position and size of each complete message from `at` on, the end of the stream left out."""
    end = os.fstat(descriptor).st_size
    for _ in range(_MAX_MESSAGES):
        head = read_at(descriptor, _HEADER_BYTES, at)
        size = _message_size(head, 0)
        if size is None and len(head) == _HEADER_BYTES:
            size = _message_size(read_at(descriptor, _PREFIX.size + MAX_METADATA_BYTES, at), 0)
        if size is None or size == _PREFIX.size or at + size > end:
            return
        yield at, size
        at += size


def parse_metadata(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """The object the writer put into the schema.

    Raises
    ------
    ValueError
        If it is missing or of a newer format.
    """
    value = json.loads((metadata or {}).get(METADATA_KEY, b"null"))
    if not isinstance(value, dict) or not isinstance(value.get("uid"), str) or len(value["uid"]) > 64:
        raise ValueError("was not written by tdbg-lab")
    if value.get("format") != FORMAT:
        raise ValueError("was written by another version of tdbg-lab")
    return value


@dataclass(frozen=True, slots=True)
class Header:
    """Who a segment is."""

    run: str
    """Id of the run that wrote it."""
    uid: str
    created_ns: int


def read_header(metadata: dict[str, Any]) -> Header:
    """The header from what `parse_metadata` gave; odd values become empty ones."""
    created = metadata.get("created_ns")
    return Header(
        run=str(metadata.get("run", ""))[:64],
        uid=metadata["uid"],
        created_ns=created if isinstance(created, int) and abs(created) < 2**63 else 0,
    )


def _message_size(data: bytes, at: int) -> int | None:
    """Bytes of the message at `at`, or None when its header is not complete."""
    if len(data) - at < _PREFIX.size:
        return None
    marker, header = _PREFIX.unpack_from(data, at)
    if marker != _CONTINUATION or header < 0 or header > MAX_METADATA_BYTES or header % 8:
        raise _BadStreamError("is not an Arrow stream")
    if header == 0:
        return _PREFIX.size
    if len(data) - at < _PREFIX.size + header:
        return None
    body = _body_size(data[at + _PREFIX.size : at + _PREFIX.size + header])
    if body < 0 or body > MAX_BATCH_BYTES:
        raise _BadStreamError(f"a batch of {body} bytes is more than allowed")
    return int(_PREFIX.size + header + body)


def field_position(message: bytes, table: int, slot: int) -> int | None:
    """Position of a field of the flatbuffer table at `table`, or None when it is absent."""
    vtable = table - struct.unpack_from("<i", message, table)[0]
    if vtable < 0:
        raise _BadStreamError("has a broken message header")
    if 4 + 2 * slot + 2 > struct.unpack_from("<H", message, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", message, vtable + 4 + 2 * slot)[0]
    return table + offset if offset else None


def _body_size(message: bytes) -> int:
    """Body length a message declares; compressed bodies are refused, we never write them."""
    root = struct.unpack_from("<I", message, 0)[0]
    kind_at, header_at, length_at = (field_position(message, root, slot) for slot in (1, 2, 3))
    if kind_at is None or header_at is None:
        raise _BadStreamError("has a broken message header")
    kind = struct.unpack_from("<B", message, kind_at)[0]
    if kind == 3:  # RecordBatch
        batch = header_at + struct.unpack_from("<I", message, header_at)[0]
        if field_position(message, batch, 3) is not None:
            raise _BadStreamError("holds compressed batches")
    elif kind != 1:  # Schema
        raise _BadStreamError("holds messages that tdbg-lab does not write")
    return int(struct.unpack_from("<q", message, length_at)[0]) if length_at is not None else 0
