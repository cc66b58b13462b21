"""Numpy arrays as rows of the table that the kernels walk: address, type, length, channel layout."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tdbg_lab.stats.dtypes import CODES
from tdbg_lab.stats.reference import real_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Memory", "channel_layout", "describe"]


class Memory(NamedTuple):
    """A dense block of memory, read in storage order. The caller keeps it alive."""

    address: int
    code: int
    """`tdbg_lab.stats.dtypes.Code` of its elements."""
    n: int
    """Elements."""
    channels: int
    """Channels to measure; 0 for none."""
    inner: int
    """Neighbouring elements of one channel: the block is stored as ``(outer, channels, inner)``."""


def channel_layout(shape: Sequence[int], strides: Sequence[int], axis: int | None) -> tuple[int, int]:
    """(channels, inner) of a dense tensor along `axis`; (0, 0) for none or an axis it does not have.

    Strides may be in elements or bytes: only their order counts. The tensor may be permuted, since
    every dimension is stored either outside or inside of the channels.
    """
    ndim = len(shape)
    if axis is None or not -ndim <= axis < ndim:
        return 0, 0
    axis %= ndim
    step = strides[axis]
    inner = 1
    for dim, size in enumerate(shape):
        if dim != axis and (strides[dim] < step or (strides[dim] == step and dim > axis)):
            inner *= size
    return shape[axis], inner


@cache
def _code(dtype: np.dtype[Any]) -> int:
    """Number of a type; its name takes 20 us to put together anew."""
    return CODES[dtype.name]


def describe(array: Any, axis: int | None) -> tuple[Memory, NDArray[Any]] | None:
    """An array as memory, and the array that owns it (a copy where it is not dense); None if not numeric."""
    values = real_values(array)
    if values is None:
        return None
    if not (values.flags.c_contiguous or values.flags.f_contiguous) or not values.dtype.isnative:
        values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    channels, inner = (0, 0)
    if axis is not None and values.size:
        channels, inner = channel_layout(values.shape, values.strides, axis)
    code = _code(values.dtype)
    return Memory(values.ctypes.data, code, values.size, channels, inner), values
