"""A checksum of some values of an array: tells whether two batches are the same."""

from __future__ import annotations

from ctypes import c_char
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from ctypes import Array

    from numpy.typing import NDArray

__all__ = ["checksum", "checksum_at", "row_stride"]

_ELEMENTS = 2048
"""Elements that it is made of, about."""
_PIECES = 4
"""Places from which they are taken: rows that follow each other are read at once."""


def checksum(values: NDArray[Any], start: int = 0) -> int:
    """A checksum of 32 bits over shape and some evenly spread values, going on from `start`."""
    head, pieces, stride = _few(values.shape)
    found = crc32(head, start)
    if not pieces:
        return crc32(values.tobytes(), found)
    for first, last in pieces:
        some = values[first:last]
        found = crc32((some.reshape(-1)[::stride] if stride > 1 else some).tobytes(), found)
    return found


def checksum_at(address: int, shape: tuple[int, ...], itemsize: int, start: int = 0) -> int | None:
    """The same of an array in C order that begins at an address of memory, read where it is.

    Making an array of it and taking its rows apart costs several times as much. None where its values lie
    too far apart for that.
    """
    head, pieces = _where(shape, itemsize)
    if not (pieces and address):
        return None
    start = crc32(head, start)
    for offset, kind in pieces:
        start = crc32(kind.from_address(address + offset), start)
    return start


def row_stride(rows: int, count: int, most: int) -> int:
    """Distance of the rows that hold about `most` of `count` elements, two rows at least."""
    return max(1, rows // max(2, rows * most // max(1, count)))


@lru_cache(maxsize=64)
def _few(shape: tuple[int, ...]) -> tuple[bytes, tuple[tuple[int, int], ...], int]:
    """What it is made of: the shape as bytes; where each piece begins and ends, in rows; a stride.

    No pieces: of everything. The stride says which of the values of a piece: one in so many.
    """
    size, head = prod(shape), repr(shape).encode()
    if size <= _ELEMENTS:
        return head, (), 1
    rows = shape[0]
    wanted = min(rows, max(2, rows * _ELEMENTS // size))
    pieces = min(wanted, _PIECES)
    height = wanted // pieces
    firsts = [i * (rows - height) // max(1, pieces - 1) for i in range(pieces)]
    left = height * (size // rows)
    most = _ELEMENTS // pieces
    return head, tuple((one, one + height) for one in firsts), left // most | 1 if left > 2 * most else 1


@lru_cache(maxsize=64)
def _where(
    shape: tuple[int, ...], itemsize: int
) -> tuple[bytes, tuple[tuple[int, type[Array[c_char]]], ...]]:
    """The shape as bytes, and where the values lie, if they lie together."""
    head, pieces, stride = _few(shape)
    if stride > 1:
        return head, ()
    row = prod(shape[1:]) * itemsize
    whole = ((0, shape[0] if shape else 1),)
    return head, tuple((first * row, c_char * ((last - first) * row)) for first, last in pieces or whole)
