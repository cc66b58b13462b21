"""The numba kernel that sweeps over many tensors in one call.

A *piece* is a stretch of elements of one tensor; large tensors are cut into several so that threads can
share them. Everything is compiled into the one native function `entry`: each further one would compile,
and load, all of it again. It takes the address of a table of numbers, `CALL`, so that Python, a pool of
threads, and the threads of an OpenMP library can all call it. Buffers come as addresses, too: `SPACE`
names them.
"""
# ruff: noqa: PLR0917, PLR1714 - numba compiles flat loops best

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray

from tdbg_lab.stats.blocks import MOMENTS, add, measure32, measure64
from tdbg_lab.stats.call import (
    APART,
    CALL,
    COMPARE,
    COPY,
    JOIN,
    MOST_BINS,
    NUMBERS,
    PLAN,
    SCORE,
    SWEEP,
    TARGET,
)
from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.jit import call_in_threads, callback, fetch_add, kernel, pointer, source_stamp
from tdbg_lab.stats.joining import COUNTS, floats_of, join, of_channels
from tdbg_lab.stats.kernels import BLOCK, LANES, ONE_LANE, channel_runs, channel_slow, channel_zeros
from tdbg_lab.stats.moves import compare_samples, copy_samples
from tdbg_lab.stats.scoring import score
from tdbg_lab.stats.widen import widen32, widen64

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "COUNTS",
    "MEMORY",
    "MOMENTS",
    "PIECE",
    "SCRATCH",
    "SPACE",
    "STAMP",
    "call",
    "entry",
]

MEMORY = ("address", "code", "n", "channels", "inner")
"""Columns of the table of tensors, ``(N, 5) int64``."""
PIECE = ("address", "code", "start", "stop", "channels", "inner", "channel_offset", "row")
"""Columns of the table of pieces, ``(P, 8) int64``, in order of their rows."""
SCRATCH = 5 * BLOCK + 2048 * LANES
"""uint32 per thread: two float32 blocks, a float64 block, counters (zero before and after)."""
SPACE = ("pieces", "counts", "moments", "bins", "found", "sums", "zeros", "bad", "dense", "tables", "scratch")
"""Buffers by address; from "scratch" on, one a thread. `dense` is ``(2048,) int64`` of zeros, `tables`
`tdbg_lab.stats.dtypes.float8_tables`, `sums` float64, `zeros` and `bad` int64 per channel of a piece."""

_NEXT, _THREAD, _TEAM = CALL.index("next"), CALL.index("thread"), CALL.index("team")

_FLOAT32 = int(Code.FLOAT32)
_WIDE = int(Code.FLOAT64)
_FLOAT8 = int(Code.FLOAT8_FIRST)
_EXTREME_LOW, _EXTREME_HIGH = 1e-140, 1e140
_CLOSELY = 8 * BLOCK
"""Elements of a piece up to which finding its nearest bin costs less than to look through its histogram."""
_LARGE = 1e30
"""Values whose sums may be too large for float32."""


@kernel()
def _run(address: int, arguments: Any) -> None:
    what, memory, rows, cut = arguments[0], arguments[1], arguments[2], arguments[3]
    if what == COPY:
        copy_samples(carray(pointer(memory, np.int64), (rows, 5)), arguments[4])
        return
    if what == COMPARE:
        compare_samples(carray(pointer(memory, np.int64), (rows, 5)), arguments[4], arguments[5])
        return
    if what == SCORE:
        score(memory, arguments[4], arguments[5])
        return
    target = carray(pointer(arguments[5], np.int64), (len(TARGET),))
    if what == NUMBERS:
        _add_numbers(memory, rows, target)
        return
    space = carray(pointer(arguments[4], np.int64), (1 << 40,))
    if what == SWEEP:
        _share(address, arguments, space)
        return
    if what == JOIN:
        pieces = arguments[7]
    else:
        pieces = _plan(memory, rows, cut, space)
        arguments[7], arguments[_NEXT], arguments[_THREAD] = pieces, 0, 0
        if what == PLAN:
            return
        if arguments[_TEAM]:
            arguments[0] = SWEEP
            call_in_threads(arguments[_TEAM], arguments[_TEAM + 1], address, arguments[_TEAM + 2])
        else:
            _sweep(0, pieces, 0, space)
    arguments[6] = join(pieces, rows, space, target)


@kernel()
def _share(address: int, arguments: Any, space: Any) -> None:
    """Measure pieces until none is left: any number of threads may do it at once."""
    pieces = arguments[7]
    thread = fetch_add(address + 8 * _THREAD, 1)
    while True:
        piece = fetch_add(address + 8 * _NEXT, 1)
        if piece >= pieces:
            return
        _sweep(piece, piece + 1, thread, space)


@kernel()
def _plan(memory: int, rows: int, cut: int, space: Any) -> int:
    tensors = carray(pointer(memory, np.int64), (rows, 5))
    pieces = carray(pointer(space[0], np.int64), (1 << 40, 8))
    p, channel, room = 0, np.int64(0), np.int64(0)
    counts = carray(pointer(space[1], np.int64), (1 << 40, COUNTS))
    for row in range(rows):
        n, start = tensors[row, 2], np.int64(0)
        while True:
            stop = min(n, start + cut)
            pieces[p, 0], pieces[p, 1], pieces[p, 2], pieces[p, 3] = (
                tensors[row, 0],
                tensors[row, 1],
                start,
                stop,
            )
            pieces[p, 4], pieces[p, 5], pieces[p, 6], pieces[p, 7] = (
                tensors[row, 3],
                tensors[row, 4],
                channel,
                row,
            )
            counts[p, 7] = room
            channel += tensors[row, 3] + APART
            room += min(stop - start, MOST_BINS)
            p += 1
            start = stop
            if start >= n:
                break
    return p


@kernel()
def _sweep(first: int, last: int, thread: int, space: Any) -> int:
    """Measure pieces; the histogram of the first starts where `_plan` has put it, the others follow.

    What is known of a piece so far is in the thread's own memory: beside it in the tables is what another
    thread measures, and for each block the two would take the cache line from each other.
    """
    pieces = carray(pointer(space[0], np.int64), (1 << 40, 8))
    counts = carray(pointer(space[1], np.int64), (1 << 40, COUNTS))
    moments = carray(pointer(space[2], np.float64), (1 << 40, MOMENTS))
    bins, found = carray(pointer(space[3], np.uint16), 1 << 40), carray(pointer(space[4], np.int64), 1 << 40)
    tables = carray(pointer(space[9], np.float32), (5, 256))
    narrow = space[10 + thread]
    spare, wide, small, tail = (
        narrow + 4 * BLOCK,
        narrow + 8 * BLOCK,
        narrow + 16 * BLOCK,
        narrow + 20 * BLOCK,
    )
    lanes = carray(pointer(tail, np.uint32), 2048 * LANES)
    block = carray(pointer(small, np.float64), MOMENTS)
    block_counts, keys = carray(pointer(small + 64, np.int64), 8), small + 128
    mine = carray(pointer(small + 192, np.int64), COUNTS)
    moment = carray(pointer(small + 320, np.float64), MOMENTS)
    fill = counts[first, 7] if last > first else np.int64(0)
    for p in range(first, last):
        code, start, stop, size = pieces[p, 1], pieces[p, 2], pieces[p, 3], _size(pieces[p, 1])
        mine[:] = 0
        moment[0], moment[1], moment[2], moment[3], moment[4] = np.inf, -np.inf, 0.0, 0.0, 0.0
        nearest, farthest = np.int64(1023), np.int64(0)
        if pieces[p, 4]:
            _clear_channels(pieces[p], space)
        for at in range(start, stop, BLOCK):
            n = min(BLOCK, stop - at)
            address = pieces[p, 0] + at * size
            ahead = address + n * size
            if code < _WIDE or code >= _FLOAT8:
                if code != _FLOAT32:
                    widen32(address, code, n, tables, narrow)
                    address = narrow
                finite = measure32(
                    address, n, ahead, spare, lanes, keys, block, block_counts, stop - start <= _CLOSELY
                )
                if pieces[p, 4]:
                    x32 = carray(pointer(address, np.float32), n)
                    finite &= max(abs(block[0]), abs(block[1])) < _LARGE
                    _channels(x32, n, at, finite, block_counts[4], pieces[p], space)
            else:
                widen64(address, code, n, wide, narrow)
                finite = measure64(wide, narrow, n, ahead, lanes, keys, block, block_counts)
                if pieces[p, 4]:
                    x64 = carray(pointer(wide, np.float64), n)
                    _channels(x64, n, at, finite, block_counts[4], pieces[p], space)
            add(mine[0], moment, block_counts[0], block)
            for k in range(7):
                mine[k] += block_counts[k]
            nearest = min(nearest, block_counts[7] >> 32)
            farthest = max(farthest, block_counts[7] & 0xFFFFFFFF)
        used = LANES if stop - start > ONE_LANE else 1
        mine[7] = fill
        fill = _flush(lanes, used, mine, nearest, farthest, bins, found, fill)
        mine[8] = fill - mine[7]
        far = max(abs(moment[0]), abs(moment[1])) if mine[0] else 0.0
        mine[9] = np.int64(far > _EXTREME_HIGH or 0.0 < far < _EXTREME_LOW)
        _copy(mine, counts[p])
        _copy(moment, moments[p])
    return last


@kernel()
def _copy(source: Any, to: Any) -> None:
    for k in range(len(source)):
        to[k] = source[k]


@kernel()
def _clear_channels(piece: Any, space: Any) -> None:
    sums, zeros, bad = of_channels(space, piece[6], piece[4])
    sums[:], zeros[:], bad[:] = 0.0, 0, 0


@kernel()
def _channels(
    x: Any,
    n: int,
    at: int,
    finite: bool,  # noqa: FBT001 - numba
    none: int,
    piece: Any,
    space: Any,
) -> None:
    """Add a block with `none` zeros to the sums of its channels."""
    channels, inner = piece[4], piece[5]
    sums, zeros, bad = of_channels(space, piece[6], channels)
    if finite:
        channel_runs(x, n, at, channels, inner, sums)
        if none:
            channel_zeros(x, n, at, channels, inner, zeros)
    else:
        channel_slow(x, n, at, channels, inner, sums, zeros, bad)


@kernel()
def _flush(
    lanes: Any, used: int, counts: Any, nearest: int, farthest: int, bins: Any, found: Any, fill: int
) -> int:
    """Empty `lanes` into the sparse histogram from `fill` on; the new fill."""
    first = max(nearest, 1)
    while first < farthest and _is_empty(lanes, first) and _is_empty(lanes, 1024 + first):
        first += 1
    for sign in range(2):
        tiny = counts[5 + sign]
        if tiny:
            bins[fill], found[fill] = sign * 1024, tiny
            fill += 1
        for magnitude in range(first, farthest + 1):
            at = (sign * 1024 + magnitude) * LANES
            total = np.int64(0)
            for lane in range(at, at + used):
                total += lanes[lane]
                lanes[lane] = 0
            if total:
                bins[fill], found[fill] = sign * 1024 + magnitude, total
                fill += 1
    return fill


@kernel()
def _is_empty(lanes: Any, bin_: int) -> bool:
    """Whether nothing was counted in a bin."""
    total = np.uint32(0)
    for lane in range(bin_ * LANES, (bin_ + 1) * LANES):
        total |= lanes[lane]
    return bool(total == 0)


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
def _add_numbers(memory: int, rows: int, target: Any) -> None:
    """Add rows of one float64 each, as `tdbg_lab.stats.block.scalar_block` makes them. Spoils the memory."""
    room, row, fill, channel = target[6], target[9], target[10], target[11]
    values = carray(pointer(memory, np.float64), (rows,))
    columns, floats = carray(pointer(target[0], np.int64), (5, room)), floats_of(target)
    offsets = carray(pointer(target[2], np.int64), (2, room + 1))
    bins = carray(pointer(target[3], np.uint16), 1 << 40)
    found = carray(pointer(target[4], np.int64), 1 << 40)
    offsets[0, row], offsets[1, row] = fill, channel
    for i in range(rows):
        v = values[i]
        is_finite = abs(v) < np.inf
        columns[0, row], columns[1, row] = 1, np.int64(np.isnan(v))
        columns[2, row], columns[3, row] = np.int64(v == np.inf), np.int64(v == -np.inf)
        columns[4, row] = np.int64(v == 0)
        value = v + 0.0 if is_finite else np.nan  # -0.0 becomes 0.0
        floats[0, row], floats[1, row], floats[2, row] = value, value, value
        floats[3, row] = value * 0.0 + 0.0
        floats[4, row], floats[5, row] = abs(value), abs(value)
        if is_finite and v != 0:
            bins[fill], found[fill] = _bin(v, memory + 8 * i), 1
            fill += 1
        row += 1
        offsets[0, row], offsets[1, row] = fill, channel
    target[9], target[10] = row, fill


@kernel()
def _bin(value: float, spare: int) -> Any:
    """The bin of a finite number that is not 0; `spare` is the address of four bytes."""
    carray(pointer(spare, np.float32), 1)[0] = np.float32(value)
    b = np.int64(carray(pointer(spare, np.uint32), 1)[0] >> np.uint32(21))
    return b - (b & 1023) + min(b & 1023, np.int64(1019))  # what has overflowed on rounding is the largest


STAMP = source_stamp(
    *("kernels", "widen", "blocks", "sweep", "joining", "moves", "scoring", "call", "jit", "dtypes")
)
"""Of the sources that the entry is compiled from."""


def _call_for(stamp: int) -> Callable[[int], None]:
    """The function that is compiled to native code. Only it is cached on disk: it has all the others inside.

    numba knows a cached function by its own file and closure, and would not see a change elsewhere;
    `stamp` in the closure does.
    """

    def call(address: int) -> None:
        arguments = carray(pointer(address, np.int64), (len(CALL),))
        if stamp >= 0:
            _run(address, arguments)

    return call


call = _call_for(STAMP)


@cache
def entry() -> Any:
    """`call` as native code: compiled, or loaded from numba's cache, when first asked for."""
    return callback(call)
