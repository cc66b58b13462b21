"""Arrow arrays from buffers of our own, and back.

`pyarrow.array`, `pyarrow.scalar` and ``to_numpy`` import pandas, whether anything of it is there or not: the
first step of a training would wait for that, and each process that writes hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["event_array", "list_array", "number_array", "numbers_of", "text_array"]

_UTF8 = pa.utf8()
_TYPES = {pa.int64(): np.int64, pa.float64(): np.float64}


def number_array(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """`values` without a copy, where they are contiguous; a third of the time of `pyarrow.array`."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def text_array(values: Sequence[str | None]) -> pa.Array:
    """Texts, and nulls for None."""
    valid = None
    if None in values:
        known = np.array([value is not None for value in values], np.bool_)
        valid = pa.py_buffer(np.packbits(known, bitorder="little"))
    plain = [value or "" for value in values]
    data = "".join(plain).encode()
    one_byte = len(data) == sum(map(len, plain))  # a character
    offsets = _offsets(plain if one_byte else [one.encode() for one in plain])
    return pa.Array.from_buffers(_UTF8, len(plain), [valid, offsets, pa.py_buffer(data)])


def list_array(lengths: Sequence[Sequence[Any]], values: pa.Array) -> pa.Array:
    """Lists that are as long as these sequences and hold `values` one after the other."""
    return pa.Array.from_buffers(
        pa.list_(values.type), len(lengths), [None, _offsets(lengths)], children=[values]
    )


def numbers_of(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """A column of whole numbers without nulls."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(array):
        return np.empty(0, np.int64)
    width = array.type.bit_width // 8
    found = np.frombuffer(array.buffers()[1], f"i{width}", len(array), array.offset * width)
    return found.astype(np.int64, copy=False)


def event_array(values: Any, kind: pa.DataType) -> pa.Array:
    """Texts, or numbers of 64 bits."""
    return text_array(values) if kind == _UTF8 else number_array(np.asarray(values, _TYPES[kind]), kind)


def _offsets(parts: Sequence[Sequence[Any]]) -> pa.Buffer:
    offsets = np.zeros(len(parts) + 1, np.int32)
    np.cumsum(list(map(len, parts)), out=offsets[1:])
    return pa.py_buffer(offsets)
