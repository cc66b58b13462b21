"""numba kernels that sweep over many tensors in one call, and join the pieces of each.

A *piece* is a run of elements of one tensor; large tensors are cut into several so that threads can
share them. `PIECE` names the columns of the piece table, ``(P, 8) int64``.
"""

# ruff: noqa: C901, PLR0912, PLR0917, PLR1714 - numba compiles flat loops best

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.jit import kernel, pointer
from tdbg_lab.stats.kernels import (
    BLOCK,
    LANES,
    bits32,
    bits64,
    channel_runs,
    channel_slow,
    count_bins,
    exact,
    spread,
    sums,
)
from tdbg_lab.stats.widen import widen32, widen64

__all__ = ["COUNTS", "MOMENTS", "PIECE", "join", "measure", "sweep"]

PIECE = ("address", "code", "start", "stop", "channels", "inner", "channel_offset", "row")
COUNTS = 10
"""Integers per piece: finite, nan, +inf, -inf, zero; bin 0, bin 1024; hist start, hist length; extreme."""
MOMENTS = 5
"""Floats per piece: min, max, mean, sum of squared differences, sum of magnitudes."""

_FLOAT32 = int(Code.FLOAT32)
_WIDE = int(Code.FLOAT64)
_FLOAT8 = int(Code.FLOAT8_FIRST)
_FIRST_BIN = np.int32(1 << 21)


def _bits32(value: float) -> np.int32:
    return np.float32(value).view(np.int32)


def _bits64(value: float) -> np.int64:
    return np.float64(value).view(np.int64)


# Sums of squares of a float32 block neither overflow nor vanish within these magnitudes.
_SMALL32, _LARGE32 = _bits32(1e-12), _bits32(1e15)
_SMALL64, _LARGE64 = _bits64(1e-120), _bits64(1e30)
_FIRST64 = _bits64(2.0**-125)
_EXTREME_LOW, _EXTREME_HIGH = 1e-140, 1e140


@kernel()
def _fast32(x: Any, n: int, lanes: Any, keys: Any, out: Any, counts: Any) -> bool:
    """Measure a float32 block; False when it needs `exact`."""
    bits = x.view(np.int32)
    zeros, near, low, high = bits32(bits, n)
    far = max(high, np.int32(~low))
    if far >= _LARGE32 or (far > 0 and (far < _SMALL32 or near < _FIRST_BIN)):
        return False
    total, absolute = sums(x, n)
    center = np.float32(total / np.float32(n))
    first, second = spread(x, n, center)
    count_bins(x.view(np.uint32), n, lanes)
    edge = keys.view(np.int32)
    edge[0] = low if low >= 0 else np.int32(low ^ np.int32(0x7FFFFFFF))
    edge[1] = high if high >= 0 else np.int32(high ^ np.int32(0x7FFFFFFF))
    ends = keys.view(np.float32)
    _store(n, zeros, np.float64(ends[0]), np.float64(ends[1]), np.float64(center), first, second, out, counts)
    out[4] = absolute
    counts[7] = (np.int64(near + 1 if far > 0 else 1023 << 21) >> 21) << 32 | (np.int64(far) >> 21)
    return True


@kernel()
def _fast64(x: Any, narrow: Any, n: int, lanes: Any, keys: Any, out: Any, counts: Any) -> bool:
    """Measure a float64 block; False when it needs `exact`."""
    zeros, near, low, high = bits64(x.view(np.int64), n)
    far = max(high, ~low)
    if far >= _LARGE64 or (far > 0 and (far < _SMALL64 or near < _FIRST64)):
        return False
    total, absolute = sums(x, n)
    center = total / n
    first, second = spread(x, n, center)
    count_bins(narrow.view(np.uint32), n, lanes)
    keys[0] = low if low >= 0 else low ^ 0x7FFFFFFFFFFFFFFF
    keys[1] = high if high >= 0 else high ^ 0x7FFFFFFFFFFFFFFF
    keys[2], keys[3] = near + 1 if far > 0 else 0, far
    ends = keys.view(np.float64)
    _store(n, zeros, ends[0], ends[1], center, first, second, out, counts)
    out[4] = absolute
    magnitudes = keys.view(np.float32)
    least, most = np.float32(ends[2]), np.float32(ends[3])
    magnitudes[0], magnitudes[1] = least, most
    edge = keys.view(np.int32)
    nearest = np.int64(edge[0] >> 21) if far > 0 else np.int64(1023)
    counts[7] = nearest << 32 | np.int64(edge[1] >> 21)
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
    first, second = np.float64(first), np.float64(second)
    counts[:] = 0
    counts[0], counts[4] = n, zeros
    out[0], out[1] = low + 0.0, high + 0.0
    if low == high:
        out[2], out[3] = low + 0.0, 0.0
    else:
        out[2], out[3] = center + first / n, max(second - first * first / n, 0.0)


@kernel()
def _add(n_a: int, moments: Any, n_b: int, block: Any) -> None:
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


@kernel()
def _flush(lanes: Any, counts: Any, nearest: int, farthest: int, bins: Any, found: Any, fill: int) -> int:
    """Empty `lanes` into the sparse histogram from `fill` on; the new fill."""
    lanes[0:LANES] = 0
    lanes[1024 * LANES : 1025 * LANES] = 0
    for sign in range(2):
        tiny = counts[5 + sign]
        if tiny:
            bins[fill], found[fill] = sign * 1024, tiny
            fill += 1
        for magnitude in range(max(nearest, 1), farthest + 1):
            at = (sign * 1024 + magnitude) * LANES
            total = np.int64(0)
            for lane in range(at, at + LANES):
                total += lanes[lane]
                lanes[lane] = 0
            if total:
                bins[fill], found[fill] = sign * 1024 + magnitude, total
                fill += 1
    return fill


@kernel()
def sweep(
    pieces: Any,
    first: int,
    last: int,
    tables: Any,
    scratch: Any,
    counts: Any,
    moments: Any,
    bins: Any,
    found: Any,
    fill: int,
    totals: Any,
    zeros: Any,
    bad: Any,
) -> int:
    """Measure pieces `first` to `last` (exclusive); the fill of the histogram afterwards.

    Parameters
    ----------
    pieces : (P, 8) int64
    tables : (5, 256) float32
        Values of the float8 types.
    scratch : (BLOCK * 3 + 2048 * LANES,) uint32
        Float32 block, float64 block, counters. The counters are zero before and after.
    counts, moments : (P, COUNTS) int64, (P, MOMENTS) float64
        Set for the pieces.
    bins, found : uint16, int64
        Sparse histograms, filled from `fill` on; room for ``min(n, 2040)`` a piece.
    totals, zeros, bad : float64, int64, int64
        Per channel, zero before: sums and zeros of the finite elements; elements that are not.
    """
    narrow = scratch[0:BLOCK].view(np.float32)
    wide = scratch[BLOCK : 3 * BLOCK].view(np.float64)
    lanes = scratch[3 * BLOCK :]
    block_moments, block_counts = np.empty(MOMENTS), np.empty(8, np.int64)
    keys = np.empty(4, np.int64)
    for p in range(first, last):
        code, start, stop = pieces[p, 1], pieces[p, 2], pieces[p, 3]
        channels, inner, base = pieces[p, 4], pieces[p, 5], pieces[p, 6]
        size = _size(code)
        mine, moment = counts[p], moments[p]
        mine[:] = 0
        moment[0], moment[1], moment[2], moment[3], moment[4] = np.inf, -np.inf, 0.0, 0.0, 0.0
        nearest, farthest = np.int64(1023), np.int64(0)
        for at in range(start, stop, BLOCK):
            n = min(BLOCK, stop - at)
            address = pieces[p, 0] + at * size
            if code < _WIDE or code >= _FLOAT8:
                if code == _FLOAT32:
                    x = carray(pointer(address, np.float32), BLOCK)
                else:
                    widen32(address, code, n, tables, narrow)
                    x = narrow
                fast = _fast32(x, n, lanes, keys, block_moments, block_counts)
                if not fast:
                    exact(x, x, n, lanes, block_moments, block_counts)
                if channels:
                    end = base + channels
                    if fast:
                        channel_runs(x, n, at, channels, inner, totals[base:end], zeros[base:end])
                    else:
                        channel_slow(
                            x, n, at, channels, inner, totals[base:end], zeros[base:end], bad[base:end]
                        )
            else:
                widen64(address, code, n, wide, narrow)
                fast = _fast64(wide, narrow, n, lanes, keys, block_moments, block_counts)
                if not fast:
                    exact(wide, narrow, n, lanes, block_moments, block_counts)
                if channels:
                    end = base + channels
                    if fast:
                        channel_runs(wide, n, at, channels, inner, totals[base:end], zeros[base:end])
                    else:
                        channel_slow(
                            wide, n, at, channels, inner, totals[base:end], zeros[base:end], bad[base:end]
                        )
            _add(mine[0], moment, block_counts[0], block_moments)
            for k in range(7):
                mine[k] += block_counts[k]
            nearest = min(nearest, block_counts[7] >> 32)
            farthest = max(farthest, block_counts[7] & 0xFFFFFFFF)
        mine[7] = fill
        fill = _flush(lanes, mine, nearest, farthest, bins, found, fill)
        mine[8] = fill - mine[7]
        far = max(abs(moment[0]), abs(moment[1])) if mine[0] else 0.0
        mine[9] = np.int64(far > _EXTREME_HIGH or 0.0 < far < _EXTREME_LOW)
    return fill


@kernel()
def _size(code: int) -> int:
    """Bytes per element."""
    if code == 0 or code == 9 or code == 10:
        return 4
    if code == 1 or code == 2 or code == 6 or code == 7:
        return 2
    if code == 8 or code == 11 or code == 12:
        return 8
    return 1


@kernel()
def join(
    pieces: Any,
    counts: Any,
    moments: Any,
    bins: Any,
    found: Any,
    dense: Any,
    int_columns: Any,
    float_columns: Any,
    offsets: Any,
) -> Any:
    """Join pieces into rows; the number of rows too extreme for float64 sums of squares.

    Parameters
    ----------
    pieces, counts, moments
        As filled by `sweep`; pieces in order of their rows, at least one a row.
    bins, found
        Histograms of the pieces in; histograms of the rows out, closed up at the front.
    dense : (2048,) int64
        Zero before and after.
    int_columns, float_columns : (5, N) int64, (6, N) float64
        The columns of the block: count, nan, +inf, -inf, zero; min, max, mean, std, l1, l2.
    offsets : (N + 1,) int64
    """
    n_pieces, n_rows = pieces.shape[0], int_columns.shape[1]
    p, fill, extreme = 0, np.int64(0), np.int64(0)
    moment = np.empty(MOMENTS)
    offsets[0] = 0
    for row in range(n_rows):
        begin = p
        moment[:] = moments[p]
        finite = counts[p, 0]
        flagged = counts[p, 9]
        for k in range(1, 5):
            int_columns[k, row] = counts[p, k]
        p += 1
        while p < n_pieces and pieces[p, 7] == row:
            _add(finite, moment, counts[p, 0], moments[p])
            finite += counts[p, 0]
            flagged |= counts[p, 9]
            for k in range(1, 5):
                int_columns[k, row] += counts[p, k]
            p += 1
        int_columns[0, row] = finite + int_columns[1, row] + int_columns[2, row] + int_columns[3, row]
        extreme += flagged
        _finish(finite, moment, float_columns, row)
        if flagged:
            float_columns[3, row] = -1.0
        fill = _join_histograms(counts, begin, p, bins, found, dense, fill)
        offsets[row + 1] = fill
    return extreme


@kernel()
def _finish(n: int, moment: Any, columns: Any, row: int) -> None:
    if n == 0:
        columns[:, row] = np.nan
        return
    low, high, mean, second = moment[0], moment[1], moment[2], moment[3]
    mean = min(max(mean, low), high) + 0.0
    columns[0, row], columns[1, row], columns[2, row] = low + 0.0, high + 0.0, mean
    columns[3, row] = 0.0 if low == high else np.sqrt(second / n)
    columns[4, row] = moment[4]
    columns[5, row] = np.sqrt(second + n * mean * mean)


@kernel()
def _join_histograms(counts: Any, begin: int, end: int, bins: Any, found: Any, dense: Any, fill: int) -> int:
    if end - begin == 1:
        start = counts[begin, 7]
        for i in range(start, start + counts[begin, 8]):
            bins[fill], found[fill] = bins[i], found[i]
            fill += 1
        return fill
    for p in range(begin, end):
        for i in range(counts[p, 7], counts[p, 7] + counts[p, 8]):
            dense[bins[i]] += found[i]
    for b in range(2048):
        if dense[b]:
            bins[fill], found[fill] = b, dense[b]
            dense[b] = 0
            fill += 1
    return fill


@kernel()
def measure(
    pieces: Any,
    tables: Any,
    scratch: Any,
    counts: Any,
    moments: Any,
    bins: Any,
    found: Any,
    totals: Any,
    zeros: Any,
    bad: Any,
    dense: Any,
    int_columns: Any,
    float_columns: Any,
    offsets: Any,
) -> Any:
    """`sweep` over all pieces and `join`, in one call."""
    sweep(pieces, 0, len(pieces), tables, scratch, counts, moments, bins, found, 0, totals, zeros, bad)
    return join(pieces, counts, moments, bins, found, dense, int_columns, float_columns, offsets)
