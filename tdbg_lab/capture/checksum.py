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
_FEW_ROWS = 4
"""Rows up to which each is read where it is."""


def checksum(values: NDArray[Any], start: int = 0) -> int:
    """A checksum of 32 bits over shape and some evenly spread values, going on from `start`."""
    head, rows, stride = _few(values.shape)
    if rows > 1:
        values = values[::rows]
    if stride > 1:
        values = values.reshape(-1)[::stride]
    return crc32(values.tobytes(), crc32(head, start))


def checksum_at(address: int, shape: tuple[int, ...], itemsize: int, start: int = 0) -> int | None:
    """The same of an array in C order that begins at an address of memory, read where it is.

    Making an array of it and taking its rows apart costs several times as much. None where its values lie
    too far apart for that.
    """
    head, pieces = _pieces(shape, itemsize)
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
def _few(shape: tuple[int, ...]) -> tuple[bytes, int, int]:
    """What it is made of: the shape as bytes; one in so many rows, of their elements one in so many."""
    size, head = prod(shape), repr(shape).encode()
    if size <= _ELEMENTS:
        return head, 1, 1
    rows = row_stride(shape[0], size, _ELEMENTS)
    left = -(-shape[0] // rows) * (size // shape[0])
    return head, rows, left // _ELEMENTS | 1 if left > 2 * _ELEMENTS else 1


@lru_cache(maxsize=64)
def _pieces(
    shape: tuple[int, ...], itemsize: int
) -> tuple[bytes, tuple[tuple[int, type[Array[c_char]]], ...]]:
    """The shape as bytes, and where the values lie: whole rows, if they are few."""
    head, rows, stride = _few(shape)
    if rows == 1 and stride == 1:
        return head, ((0, c_char * (prod(shape) * itemsize)),)
    if stride > 1 or shape[0] > _FEW_ROWS * rows:
        return head, ()
    row = prod(shape[1:]) * itemsize
    return head, tuple((first * row, c_char * row) for first in range(0, shape[0], rows))
