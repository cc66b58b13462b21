"""numba kernels that measure one block: the fast way where its bits allow it, else one by one.

A measured block is ``MOMENTS`` floats (min, max, mean, sum of squared differences, sum of magnitudes)
and 8 integers (finite, nan, +inf, -inf, zero; bin 0, bin 1024; nearest << 32 | farthest magnitude bin). The
nearest bin is 0 where it was not looked for.
"""
# ruff: noqa: PLR0917 - numba compiles flat loops best

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from tdbg_lab.stats.jit import kernel, pointer
from tdbg_lab.stats.kernels import (
    BLOCK,
    count_bins,
    count_tiny,
    exact,
    keep_finite,
    look32,
    look64,
    nearest32,
    nearest64,
    spread,
    take_zeros,
)

__all__ = ["MOMENTS", "add", "measure32", "measure64"]

MOMENTS = 5
_OFF = 0.9
"""Share of the squares of the differences to the first value that is due to its distance from the mean, from
which precision is lost: then the mean is taken instead. By the first value itself it is below 1 - 1 / n."""
_FIRST_BIN, _UNKNOWN, _NONE = np.uint32(1 << 21), np.uint32(0), np.int32(0)
_SIGN32, _TOP32, _INF = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)
_SIGN64, _TOP64 = np.uint64(0x8000000000000000), np.uint64(0x7FFFFFFFFFFFFFFF)

# Sums of squares of a float32 block neither overflow nor vanish within these magnitudes.
_SMALL32, _LARGE32 = np.float32(1e-12).view(np.uint32), np.float32(1e15).view(np.uint32)
_SMALL64, _LARGE64 = np.float64(1e-120).view(np.uint64), np.float64(1e30).view(np.uint64)
_FIRST64 = np.float64(2.0**-125).view(np.uint64)


@kernel()
def measure32(
    address: int,
    n: int,
    ahead: int,
    spare: int,
    lanes: Any,
    keys: int,
    out: Any,
    counts: Any,
    closely: bool,  # noqa: FBT001 - numba
) -> bool:
    """Measure `n` float32 at an address; False when they hold NaN or infinities.

    `ahead` is where the next ones are read, `spare` the address of another such block, `keys` of 32 bytes.
    `closely` says that the nearest bin is wanted: else the histogram must be looked through from its start.
    """
    if _finite32(address, n, ahead, lanes, keys, out, counts, closely):
        return True
    bits = carray(pointer(address, np.uint32), n)
    kept, above, below = keep_finite(bits, n, carray(pointer(spare, np.uint32), BLOCK))
    counts[:] = 0
    counts[7] = 1023 << 32
    if kept:
        _finite32(spare, kept, ahead, lanes, keys, out, counts, closely)
    counts[1], counts[2], counts[3] = n - kept - above - below, above, below
    return False


@kernel()
def _finite32(
    address: int,
    n: int,
    ahead: int,
    lanes: Any,
    keys: int,
    out: Any,
    counts: Any,
    closely: bool,  # noqa: FBT001 - numba
) -> bool:
    """Measure `n` float32 if all are finite; whether they are."""
    x, bits = carray(pointer(address, np.float32), n), carray(pointer(address, np.uint32), n)
    center = x[0]
    high, low, first, second, absolute = look32(x, bits, n, center)
    far: Any = max(np.uint32(max(high, np.int32(0))), np.uint32(low & _TOP32))
    if far >= _INF:
        return False
    if far >= _LARGE32 or 0 < far < _SMALL32:
        exact(x, bits, n, lanes, out, counts)
        return True
    if first * first > _OFF * n * second:
        center = np.float32(center + first / n)
        first, second = spread(x, n, center)
    count_bins(bits, n, lanes, ahead)
    zeros, positive, negative, near = take_zeros(lanes), _NONE, _NONE, _UNKNOWN
    mixed = high >= 0 and low & _SIGN32
    if closely or zeros or not mixed:
        near = nearest32(bits, n)
        if near < _FIRST_BIN:
            positive, negative = count_tiny(bits, n)
            zeros -= np.int64(positive) + np.int64(negative)
    edge, ends = carray(pointer(keys, np.uint32), 2), carray(pointer(keys, np.float32), 2)
    least = np.uint32(0) if zeros else np.uint32(near + np.uint32(1))
    edge[0] = low if low & _SIGN32 else least
    edge[1] = np.uint32(high) if high >= 0 else np.uint32(least | _SIGN32)
    low_end, high_end = np.float64(ends[0]), np.float64(ends[1])
    _store(
        n, zeros, low_end, high_end, np.float64(center), np.float64(first), np.float64(second), out, counts
    )
    out[4] = absolute
    counts[5], counts[6] = positive, negative
    nearest = np.int64(near) + 1 if far > 0 else np.int64(1023 << 21)
    counts[7] = (nearest >> 21) << 32 | (np.int64(far) >> 21)
    return True


@kernel()
def measure64(
    address: int, narrow: int, n: int, ahead: int, lanes: Any, keys: int, out: Any, counts: Any
) -> bool:
    """Measure `n` float64 at an address, float32 at another; False when they may hold NaN or infinities."""
    x, bits = carray(pointer(address, np.float64), n), carray(pointer(narrow, np.uint32), n)
    center = x[0]
    wide = carray(pointer(address, np.uint64), n)
    near = nearest64(wide, n)
    high, low, first, second, absolute = look64(x, wide, n, center)
    far: Any = max(np.uint64(max(high, np.int64(0))), low & _TOP64)
    if far >= _LARGE64 or (far > 0 and (far < _SMALL64 or near < _FIRST64)):
        exact(x, bits, n, lanes, out, counts)
        return False
    if first * first > _OFF * n * second:
        center += first / n
        first, second = spread(x, n, center)
    count_bins(bits, n, lanes, ahead)
    zeros = take_zeros(lanes)
    integers, ends = carray(pointer(keys, np.uint64), 4), carray(pointer(keys, np.float64), 4)
    least = np.uint64(0) if zeros else near + np.uint64(1)
    integers[0] = low if low & _SIGN64 else least
    integers[1] = np.uint64(high) if high >= 0 else least | _SIGN64
    integers[2], integers[3] = near + np.uint64(1), far
    _store(n, zeros, ends[0], ends[1], center, first, second, out, counts)
    out[4] = absolute
    nearest, farthest = np.float32(ends[2]), np.float32(ends[3])
    magnitudes, edge = carray(pointer(keys, np.float32), 2), carray(pointer(keys, np.uint32), 2)
    magnitudes[0], magnitudes[1] = nearest, farthest
    counts[7] = (np.int64(edge[0] >> 21) if far > 0 else np.int64(1023)) << 32 | np.int64(edge[1] >> 21)
    return True


@kernel()
def _store(
    n: int,
    zeros: int,
    low: float,
    high: float,
    center: float,
    first: float,
    second: float,
    out: Any,
    counts: Any,
) -> None:
    counts[:] = 0
    counts[0], counts[4] = n, zeros
    out[0], out[1] = low + 0.0, high + 0.0
    if low == high:
        out[2], out[3] = low + 0.0, 0.0
    else:
        out[2], out[3] = center + first / n, max(second - first * first / n, 0.0)


@kernel()
def add(n_a: int, moments: Any, n_b: int, block: Any) -> None:
    """Chan's update of `moments` (of `n_a` elements) by `block` (of `n_b`), both `MOMENTS` long."""
    if n_b == 0:
        return
    if n_a == 0:
        moments[:] = block
        return
    n = n_a + n_b
    delta = block[2] - moments[2]
    moments[0] = min(moments[0], block[0])
    moments[1] = max(moments[1], block[1])
    moments[2] += delta * (n_b / n)
    moments[3] += block[3] + delta * delta * (n_a * (n_b / n))
    moments[4] += block[4]
