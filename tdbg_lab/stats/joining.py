"""numba kernels that join the pieces of each tensor into its row."""
# ruff: noqa: PLR0917 - numba compiles flat loops best

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from tdbg_lab.stats.blocks import MOMENTS, add
from tdbg_lab.stats.jit import kernel, pointer

__all__ = ["COUNTS", "floats_of", "join", "of_channels"]

COUNTS = 10
"""Integers per piece: finite, nan, +inf, -inf, zero; bin 0, bin 1024; hist start, hist length; extreme."""


@kernel()
def join(n_pieces: int, rows: int, space: Any, target: Any) -> Any:
    """Join pieces into rows that are added to the target; how many are too extreme."""
    pieces = carray(pointer(space[0], np.int64), (n_pieces, 8))
    counts = carray(pointer(space[1], np.int64), (n_pieces, COUNTS))
    moments = carray(pointer(space[2], np.float64), (n_pieces, MOMENTS))
    bins, found = carray(pointer(space[3], np.uint16), 1 << 40), carray(pointer(space[4], np.int64), 1 << 40)
    dense = carray(pointer(space[8], np.int64), 2048)
    room, first, fill, channel = target[6], target[9], target[10], target[11]
    columns, floats = carray(pointer(target[0], np.int64), (5, room)), floats_of(target)
    offsets = carray(pointer(target[2], np.int64), (2, room + 1))
    to_bins = carray(pointer(target[3], np.uint16), 1 << 40)
    to_found = carray(pointer(target[4], np.int64), 1 << 40)
    channels = carray(pointer(target[5], np.float32), (2, target[8]))
    p, extreme = 0, np.int64(0)
    offsets[0, first], offsets[1, first] = fill, channel
    for row in range(first, first + rows):
        begin = p
        moment = moments[p]
        finite = counts[p, 0]
        flagged = counts[p, 9]
        for k in range(1, 5):
            columns[k, row] = counts[p, k]
        p += 1
        while p < n_pieces and pieces[p, 7] == row - first:
            add(finite, moment, counts[p, 0], moments[p])
            finite += counts[p, 0]
            flagged |= counts[p, 9]
            for k in range(1, 5):
                columns[k, row] += counts[p, k]
            p += 1
        total = finite + columns[1, row] + columns[2, row] + columns[3, row]
        columns[0, row] = total
        extreme += flagged
        _finish(finite, moment, floats, row)
        if flagged:
            floats[3, row] = -1.0
        fill = _join_histograms(counts, begin, p, bins, found, dense, to_bins, to_found, fill)
        if pieces[begin, 4]:
            _join_channels(pieces[begin:p], total, channel, space, channels)
            channel += pieces[begin, 4]
        offsets[0, row + 1], offsets[1, row + 1] = fill, channel
    target[9], target[10], target[11] = first + rows, fill, channel
    return extreme


@kernel()
def floats_of(target: Any) -> Any:
    """Columns of min, max, mean, std, L1 and L2 of the rows that new ones are added to."""
    return carray(pointer(target[1], np.float64), (6, target[6]))


@kernel()
def _join_channels(pieces: Any, count: int, at: int, space: Any, out: Any) -> None:
    """Share of zeros and mean of the finite elements of each channel of a row, to `out` from `at` on.

    Piece by piece into the first: channel by channel would jump from piece to piece, whose distance in
    memory is a power of two as often as not, and then they push each other out of the cache.
    """
    width, first = pieces[0, 4], pieces[0, 6]
    sums, zeros, bad = of_channels(space, first, width)
    for p in range(1, len(pieces)):
        more_sums, more_zeros, more_bad = of_channels(space, pieces[p, 6], width)
        for c in range(width):
            sums[c] += more_sums[c]
        for c in range(width):
            zeros[c] += more_zeros[c]
        for c in range(width):
            bad[c] += more_bad[c]
    each = count // width
    for c in range(width):
        out[0, at + c] = zeros[c] / each
        out[1, at + c] = sums[c] / (each - bad[c])


@kernel()
def of_channels(space: Any, first: int, width: int) -> Any:
    """Sums, zeros, and what is not finite, of the `width` channels of a piece."""
    sums = carray(pointer(space[5], np.float64), 1 << 40)
    zeros, bad = carray(pointer(space[6], np.int64), 1 << 40), carray(pointer(space[7], np.int64), 1 << 40)
    last = first + width
    return sums[first:last], zeros[first:last], bad[first:last]


@kernel()
def _finish(n: int, moment: Any, floats: Any, row: int) -> None:
    if n == 0:
        for k in range(6):
            floats[k, row] = np.nan
        return
    low, high, mean, second = moment[0], moment[1], moment[2], moment[3]
    mean = min(max(mean, low), high) + 0.0
    floats[0, row], floats[1, row], floats[2, row] = low + 0.0, high + 0.0, mean
    floats[3, row] = 0.0 if low == high else np.sqrt(second / n)
    floats[4, row] = moment[4]
    floats[5, row] = np.sqrt(second + n * mean * mean)


@kernel()
def _join_histograms(
    counts: Any,
    begin: int,
    end: int,
    bins: Any,
    found: Any,
    dense: Any,
    to_bins: Any,
    to_found: Any,
    fill: int,
) -> int:
    """Add the histograms of the pieces of a row, from `fill` on; the new fill."""
    if end - begin == 1:
        start = counts[begin, 7]
        for i in range(start, start + counts[begin, 8]):
            to_bins[fill], to_found[fill] = bins[i], found[i]
            fill += 1
        return fill
    for p in range(begin, end):
        for i in range(counts[p, 7], counts[p, 7] + counts[p, 8]):
            dense[bins[i]] += found[i]
    for b in range(2048):
        if dense[b]:
            to_bins[fill], to_found[fill] = b, dense[b]
            dense[b] = 0
            fill += 1
    return fill
