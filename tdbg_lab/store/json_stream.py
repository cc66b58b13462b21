"""The events of a trace, one after the other, without holding the file in memory."""

from __future__ import annotations

import json
import re
import zlib
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["BrokenTraceError", "TraceStream"]

_CHUNK = 2**20
_MAX_VALUE_CHARS = 16 * 2**20
"""Characters of one event, or of one value beside the events."""
_MAX_BYTES = 64 * 2**30
"""Unpacked: a small file may hold a huge trace."""
_SPACE = re.compile(r"[ \t\r\n]*")


class BrokenTraceError(ValueError):
    """The file goes on with something that is no trace. What came before it stands."""


class _Unpacked:
    """A gzipped file; unlike `gzip.open` it gives all there is of one that is torn."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._engine = zlib.decompressobj(wbits=31)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, none at the end."""
        while True:
            if self._engine.eof:  # another member may follow
                rest = self._engine.unused_data or self._packed.read(size)
                if not rest:
                    return b""
                self._engine = zlib.decompressobj(wbits=31)
            else:
                rest = self._engine.unconsumed_tail or self._packed.read(size)
                if not rest:
                    raise EOFError("the file ends too early")
            data = self._engine.decompress(rest, size)
            if data:
                return data


class TraceStream:
    """Reads ``{"traceEvents": [...], ...}`` or ``[...]``, plain or gzipped.

    Attributes
    ----------
    head
        The values beside the events that were met so far: numbers, texts and small objects.
    """

    def __init__(self, path: Path) -> None:
        self.head: dict[str, Any] = {}
        self.bytes_read = 0
        self._path = path
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._file: Any = None
        self._decoder = json.JSONDecoder()
        self._pending = b""

    def events(self) -> Iterator[dict[str, Any]]:
        """The events.

        Raises
        ------
        BrokenTraceError
            The file ends too early, or is no trace.
        """
        packed = self._path.open("rb")
        with packed:
            is_gzip = packed.read(2) == b"\x1f\x8b"
            packed.seek(0)
            self._file = _Unpacked(packed) if is_gzip else packed
            first = self._next_char()
            if first == "[":
                yield from self._array()
            elif first == "{":
                yield from self._object()
            else:
                raise BrokenTraceError("it does not begin like a JSON trace")

    def _object(self) -> Iterator[dict[str, Any]]:
        while True:
            char = self._next_char()
            if char == "}":
                return
            if char == ",":
                continue
            if char != '"':
                raise BrokenTraceError("a key is missing")
            self._at -= 1
            key = self._value()
            if self._next_char() != ":":
                raise BrokenTraceError("a key has no value")
            if key == "traceEvents":
                if self._next_char() != "[":
                    raise BrokenTraceError("traceEvents is no list")
                yield from self._array()
            else:
                self.head[str(key)] = self._value()

    def _array(self) -> Iterator[dict[str, Any]]:
        while True:
            char = self._next_char()
            if char == "]":
                return
            if char == ",":
                continue
            self._at -= 1
            value = self._value()
            if isinstance(value, dict):
                yield value

    def _next_char(self) -> str:
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                self._at += 1
                return self._buffer[self._at - 1]
            if not self._fill():
                raise BrokenTraceError("it ends in the middle")

    def _value(self) -> Any:
        while True:
            try:
                match = _SPACE.match(self._buffer, self._at)
                value, end = self._decoder.raw_decode(self._buffer, match.end() if match else self._at)
            except json.JSONDecodeError as error:
                if len(self._buffer) - self._at > _MAX_VALUE_CHARS:
                    raise BrokenTraceError("an event is longer than any can be") from error
                if not self._fill():
                    raise BrokenTraceError("it ends in the middle, or is no JSON") from error
                continue
            except RecursionError as error:
                raise BrokenTraceError("an event is nested too deeply") from error
            except ValueError as error:
                raise BrokenTraceError("a number has too many digits") from error
            if end == len(self._buffer) and self._fill():  # a number may go on
                continue
            self._at = end
            return value

    def _fill(self) -> bool:
        """Read on; False at the end."""
        if self._ended or self._file is None:
            return False
        try:
            data = self._file.read(_CHUNK)
        except (EOFError, OSError, zlib.error) as error:
            self._ended = True
            raise BrokenTraceError(f"it cannot be unpacked to its end ({error})") from error
        self.bytes_read += len(data)
        if self.bytes_read > _MAX_BYTES:
            raise BrokenTraceError(f"it is larger than {_MAX_BYTES} bytes")
        self._ended = not data
        data = self._pending + data
        cut = len(data) if self._ended else _whole(data)
        self._pending = data[cut:]
        self._buffer = self._buffer[self._at :] + data[:cut].decode("utf-8", "replace")
        self._at = 0
        return not self._ended


def _whole(data: bytes) -> int:
    """Length without the beginning of a character that goes on in the next part."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return len(data)
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if needed <= back else len(data) - back
    return len(data)
