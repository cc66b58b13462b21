"""numba kernels over one block: up to `BLOCK` elements, small enough to stay in the L1 cache.

A block goes through a look at all values and then the histogram, in loops of their own, because the former
then become vector code; the data come from memory once. Minimum and maximum are taken over the bits, because
float reductions of them do not vectorise: those of positive floats have their order, of negative ones the
reverse.

The histogram has `LANES` counters per bin, side by side: neighbouring elements often share a bin, and
eight counters keep them from waiting for each other, while no two lie 4096 bytes apart.
"""

# ruff: noqa: C901, FURB136, PLR0124, PLR0917 - numba compiles flat loops best

from __future__ import annotations

from typing import Any

import numpy as np

from tdbg_lab.stats.jit import REASSOCIATE, kernel, prefetch

__all__ = [
    "BLOCK",
    "LANES",
    "ONE_LANE",
    "channel_runs",
    "channel_slow",
    "channel_zeros",
    "count_bins",
    "count_tiny",
    "exact",
    "keep_finite",
    "look32",
    "look64",
    "nearest32",
    "nearest64",
    "spread",
    "take_zeros",
]

BLOCK = 4096
LANES = 8
ONE_LANE = 256
_WIDE_ROW = 32
_i32: Any = np.int32
_u32: Any = np.uint32
_TOP = np.uint32(0x7FFFFFFF)
_INF = np.uint32(0x7F800000)
_NEGATIVE_INF = np.uint32(0xFF800000)
_ZERO = np.int32(0)
_U0 = np.uint32(0)
_U1 = np.uint32(1)
_LAST_TINY = np.uint32((1 << 21) - 1)
_SHIFT = np.uint32(21)
_EIGHT = np.uint32(8)


def _nearest(unsigned: Any, signed: Any) -> Any:
    """`nearest32` for floats whose bits are these integers."""
    one, every_bit, top = unsigned(1), unsigned(np.iinfo(unsigned).max), unsigned(np.iinfo(signed).max)

    @kernel()
    def nearest(bits: Any, n: int) -> Any:
        near = every_bit
        for i in range(n):
            before = unsigned(unsigned(bits[i] & top) - one)  # a zero wraps to the largest
            near = before if before < near else near
        return near

    return nearest


nearest32 = _nearest(np.uint32, np.int32)
"""``(bits, n)``: smallest magnitude that is not zero among ``(n,) uint32`` float bits, less one; the largest
uint32 when all are zero."""
nearest64 = _nearest(np.uint64, np.int64)
"""`nearest32` for float64."""


def _look(unsigned: Any, signed: Any) -> Any:
    """`look32` for floats whose bits are these integers."""
    none, lowest = unsigned(0), signed(np.iinfo(signed).min)

    @kernel(fastmath=REASSOCIATE)
    def look(x: Any, bits: Any, n: int, center: Any) -> Any:
        high, low = lowest, none
        first = second = absolute = x[0] - x[0]  # ``x[0] * 0`` would be a float64
        for i in range(n):
            v = bits[i]
            high = signed(v) if signed(v) > high else high
            low = v if v > low else low
            difference = x[i] - center
            first += difference
            second += difference * difference
            absolute += abs(x[i])
        return high, low, first, second, absolute

    return look


look32 = _look(np.uint32, np.int32)
"""``(x, bits, n, center)``: one look at ``(n,) float32`` and their bits, uint32.

`nearest32` is apart, as few blocks need it, and a sixth result would leave the compiler too few registers to
add several vectors at once. The integers come out right whatever the values are; the sums are of no use when
some are NaN, and miss a few millionths at most when all are finite.

Returns
-------
high : int32
    Bits of the largest value; negative when none is positive or 0.0.
low : uint32
    Bits of the smallest value, if its sign bit is set; otherwise no sign bit is.
first, second, absolute : float32
    Sum of the differences to `center`, of their squares, and of the magnitudes."""
look64 = _look(np.uint64, np.int64)
"""`look32` for float64."""


@kernel(fastmath=REASSOCIATE)
def spread(x: Any, n: int, center: Any) -> Any:
    """(sum, sum of squares) of the differences to `center`, in the precision of the values.

    A center that float32 has rounded is off by some units in the last place. Where the values differ
    by no more than that, their differences are small multiples of it, and add up exactly.
    """
    first = second = x[0] - x[0]
    for i in range(n):
        difference = x[i] - center
        first += difference
        second += difference * difference
    return first, second


@kernel()
def _count_eight(bits: Any, i: int, lanes: Any) -> None:
    lanes[(bits[i] >> _SHIFT) * _EIGHT] += _U1
    lanes[(bits[i + 1] >> _SHIFT) * _EIGHT + _u32(1)] += _U1
    lanes[(bits[i + 2] >> _SHIFT) * _EIGHT + _u32(2)] += _U1
    lanes[(bits[i + 3] >> _SHIFT) * _EIGHT + _u32(3)] += _U1
    lanes[(bits[i + 4] >> _SHIFT) * _EIGHT + _u32(4)] += _U1
    lanes[(bits[i + 5] >> _SHIFT) * _EIGHT + _u32(5)] += _U1
    lanes[(bits[i + 6] >> _SHIFT) * _EIGHT + _u32(6)] += _U1
    lanes[(bits[i + 7] >> _SHIFT) * _EIGHT + _u32(7)] += _U1


@kernel()
def count_bins(bits: Any, n: int, lanes: Any, ahead: int) -> None:
    """Add ``(n,) uint32`` float bits to the histogram `lanes`, shape ``(2048 * LANES,) uint32``.

    Blocks up to `ONE_LANE` use the first counter of each bin only, so that emptying them is short.
    Counting hardly uses the memory: meanwhile what lies `ahead`, where the next block is read, is fetched.
    """
    whole = n // 16 * 16 if n > ONE_LANE else 0
    for i in range(0, whole, 16):
        prefetch(ahead + 4 * i)
        _count_eight(bits, i, lanes)
        _count_eight(bits, i + 8, lanes)
    for i in range(whole, n):
        lanes[(bits[i] >> _SHIFT) * _EIGHT] += _U1


@kernel()
def take_zeros(lanes: Any) -> Any:
    """How many values were counted in the bins of the zeros in `lanes`; none are left there."""
    zeros: Any = 0
    for sign in range(2):
        first = sign * 1024 * LANES
        for lane in range(first, first + LANES):
            zeros += np.int64(lanes[lane])
            lanes[lane] = _U0
    return zeros


@kernel()
def count_tiny(bits: Any, n: int) -> Any:
    """(positive, negative) of ``(n,) uint32`` float bits that share the bins of the zeros and are none."""
    positive, negative = _ZERO, _ZERO
    for i in range(n):
        v = bits[i]
        tiny = _u32(_u32(v & _TOP) - _U1) < _LAST_TINY
        positive = _i32(positive + _i32(tiny and v <= _TOP))
        negative = _i32(negative + _i32(tiny and v > _TOP))
    return positive, negative


@kernel()
def keep_finite(bits: Any, n: int, out: Any) -> Any:
    """Copy the finite of ``(n,) uint32`` float bits to the front of `out`: (kept, +inf, -inf)."""
    kept: Any = 0
    above, below = _ZERO, _ZERO
    for i in range(n):
        v = bits[i]
        above = _i32(above + _i32(v == _INF))
        below = _i32(below + _i32(v == _NEGATIVE_INF))
    for i in range(n):
        v = bits[i]
        out[kept] = v
        kept += np.int64(_u32(v & _TOP) < _INF)
    return kept, above, below


@kernel()
def exact(x: Any, bits: Any, n: int, lanes: Any, out: Any, counts: Any) -> None:
    """Any block, one element at a time in float64: for NaN, infinities, and extreme magnitudes.

    Parameters
    ----------
    x : (n,) float32 or float64
    bits : (n,) uint32
        Of the same, rounded to float32.
    lanes : (2048 * LANES,) uint32
        Receives bins other than 0 and 1024, which hold the zeros of the fast blocks.
    out : (5,) float64
        Set to min, max, mean, sum of squared differences, sum of magnitudes.
    counts : (8,) int64
        Set to finite, nan, +inf, -inf, zero; bins 0 and 1024; ``nearest << 32 | farthest`` magnitude
        bin (1023 << 32 when there is none).
    """
    counts[:] = 0
    nearest: Any = 1023
    farthest: Any = 0
    low, high, total, absolute = np.inf, -np.inf, 0.0, 0.0
    for i in range(n):
        v = np.float64(x[i])
        if v != v:
            counts[1] += 1
        elif v == np.inf:
            counts[2] += 1
        elif v == -np.inf:
            counts[3] += 1
        else:
            counts[0] += 1
            total += v
            absolute += abs(v)
            low = min(low, v)
            high = max(high, v)
            if v == 0:
                counts[4] += 1
                continue
            b: Any = np.int64(bits[i] >> _SHIFT)
            magnitude: Any = b & 1023
            if magnitude >= 1020:  # overflowed on rounding
                b -= magnitude - 1019
                magnitude = 1019
            if magnitude == 0:
                # a value that rounded to -0.0 or 0.0 keeps its sign bit
                counts[6 if v < 0 else 5] += 1
            else:
                lanes[b * 8] += _U1
            nearest = min(nearest, magnitude)
            farthest = max(farthest, magnitude)
    mean = total / counts[0] if counts[0] else 0.0
    first, second = 0.0, 0.0
    for i in range(n):
        difference = np.float64(x[i]) - mean
        if abs(difference) < np.inf:
            first += difference
            second += difference * difference
    if counts[0]:
        mean += first / counts[0]
        second = max(second - first * first / counts[0], 0.0)
    out[0], out[1], out[2], out[3], out[4] = low, high, mean, second, absolute
    counts[7] = nearest << 32 | farthest


@kernel()
def _add_row(x: Any, n: int, total: Any) -> None:
    for j in range(n):
        total[j] += x[j]


@kernel()
def _add_eight_rows(x: Any, n: int, total: Any) -> None:
    """Rows that follow each other: one float64 addition for eight elements of a channel.

    In pairs, and no other order: so eight that are equal add up exactly. Written for the compiler to make
    vector code of it: a slice for each row, because an index like ``n + j`` might be negative for all it
    knows.
    """
    a, b, c, d = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    e, f, g, h = x[4 * n : 5 * n], x[5 * n : 6 * n], x[6 * n : 7 * n], x[7 * n : 8 * n]
    for j in range(n):
        total[j] += ((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j]))


@kernel()
def _add_four_rows(x: Any, n: int, total: Any) -> None:
    first, second, third, fourth = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    for j in range(n):
        total[j] += (first[j] + second[j]) + (third[j] + fourth[j])


@kernel()
def _add_two_rows(x: Any, n: int, total: Any) -> None:
    first, second = x[:n], x[n : 2 * n]
    for j in range(n):
        total[j] += first[j] + second[j]


@kernel(fastmath=REASSOCIATE)
def _sum_run(x: Any, n: int) -> Any:
    part = x[0] - x[0]
    for j in range(n):
        part += x[j]
    return part


@kernel()
def _count_row(x: Any, n: int, zeros: Any) -> None:
    for j in range(n):
        zeros[j] += _i32(x[j] == 0)


@kernel()
def _count_two_rows(x: Any, n: int, zeros: Any) -> None:
    first, second = x[:n], x[n : 2 * n]
    for j in range(n):
        zeros[j] += _i32(_i32(first[j] == 0) + _i32(second[j] == 0))


@kernel()
def _count_run(x: Any, n: int) -> Any:
    none = _ZERO
    for j in range(n):
        none = _i32(none + _i32(x[j] == 0))
    return none


@kernel()
def channel_runs(x: Any, n: int, start: int, channels: int, inner: int, total: Any) -> None:
    """Add a finite block to per-channel sums, ``(channels,) float64``.

    Element ``i`` stands at ``start + i`` of a tensor stored as ``(outer, channels, inner)``.
    """
    if inner == 1:
        i = min(-start % channels, n)
        if i:
            channel = start % channels
            _add_row(x[:i], i, total[channel : channel + i])
        while n - i >= 8 * channels and channels >= _WIDE_ROW:
            _add_eight_rows(x[i : i + 8 * channels], channels, total)
            i += 8 * channels
        if n - i >= 4 * channels and channels >= _WIDE_ROW:
            _add_four_rows(x[i : i + 4 * channels], channels, total)
            i += 4 * channels
        if n - i >= 2 * channels and channels >= _WIDE_ROW:
            _add_two_rows(x[i : i + 2 * channels], channels, total)
            i += 2 * channels
        while i < n:
            run = min(channels, n - i)
            _add_row(x[i : i + run], run, total[:run])
            i += run
        return
    channel, gone = start // inner % channels, start % inner
    i = 0
    while i < n:
        run = min(inner - gone, n - i)
        total[channel] += _sum_run(x[i : i + run], run)
        i += run
        gone = 0
        channel += 1
        if channel == channels:
            channel = 0


@kernel()
def channel_zeros(x: Any, n: int, start: int, channels: int, inner: int, zeros: Any) -> None:
    """Like `channel_runs` for the counts of zeros, ``(channels,) int64``; most blocks have none."""
    if inner == 1:
        i = min(-start % channels, n)
        if i:
            channel = start % channels
            _count_row(x[:i], i, zeros[channel : channel + i])
        while n - i >= 2 * channels and channels >= _WIDE_ROW:
            _count_two_rows(x[i : i + 2 * channels], channels, zeros)
            i += 2 * channels
        while i < n:
            run = min(channels, n - i)
            _count_row(x[i : i + run], run, zeros[:run])
            i += run
        return
    channel, gone = start // inner % channels, start % inner
    i = 0
    while i < n:
        run = min(inner - gone, n - i)
        zeros[channel] += _count_run(x[i : i + run], run)
        i += run
        gone = 0
        channel += 1
        if channel == channels:
            channel = 0


@kernel()
def channel_slow(
    x: Any, n: int, start: int, channels: int, inner: int, total: Any, zeros: Any, bad: Any
) -> None:
    """`channel_runs` for a block that may hold NaN or infinities, counted in `bad`."""
    for i in range(n):
        channel = (start + i) // inner % channels
        v = np.float64(x[i])
        if abs(v) < np.inf:
            total[channel] += v
            zeros[channel] += np.int64(v == 0)
        else:
            bad[channel] += 1
