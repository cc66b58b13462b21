"""The wire format of protobuf, as far as event files use it. Messages are untrusted: never recurses."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Field", "fields", "fixed32", "fixed64", "length_delimited", "varint"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10

Field = tuple[int, int, "int | bytes"]
"""Number, wire type, and an int (varint) or the bytes of the value."""


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message in order.

    Raises
    ------
    ValueError
        It is not a message.
    """
    at, end = 0, len(message)
    while at < end:
        key, at = _read_varint(message, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, at = _read_varint(message, at)
        elif kind in {_FIXED64, _FIXED32}:
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field has the unknown wire type {kind}")
        if at + size > end:
            raise ValueError("a field is longer than its message")
        yield number, kind, message[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for i in range(at, min(at + _MAX_VARINT_BYTES, len(data))):
        byte = data[i]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, i + 1
        shift += 7
    raise ValueError("a number does not end")


def varint(number: int, value: int) -> bytes:
    """A field with an integer; negative ones as 64 bits."""
    return _encoded(number << 3 | _VARINT) + _encoded(value & (1 << 64) - 1)


def fixed64(number: int, value: float) -> bytes:
    """A field with a double."""
    return _encoded(number << 3 | _FIXED64) + struct.pack("<d", value)


def fixed32(number: int, value: float) -> bytes:
    """A field with a float; what does not fit becomes an infinity."""
    try:
        data = struct.pack("<f", value)
    except OverflowError:
        data = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _encoded(number << 3 | _FIXED32) + data


def length_delimited(number: int, value: bytes) -> bytes:
    """A field with text, packed numbers or a message."""
    return _encoded(number << 3 | _BYTES) + _encoded(len(value)) + value


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
