"""numba kernels that add one block to the sums and the counts of zeros of its channels.

Element ``i`` of a block stands at ``start + i`` of a tensor stored as ``(outer, channels, inner)``.

Where channels lie side by side, as in sequences, a row of float32 is added to a row of float32, and
counts are 32 bits wide: with nothing to convert, and twice as many to a register as of 64 bits. Every
few blocks these rows are emptied into the sums in float64, before rounding adds up to anything.
"""

# ruff: noqa: PLR0917 - numba

from __future__ import annotations

from typing import Any

import numpy as np

from tdbg_lab.stats.jit import REASSOCIATE, kernel

__all__ = ["add_rows", "add_runs", "add_slowly", "count_rows", "count_runs", "empty_rows"]

_i32: Any = np.int32
_ZERO = np.int32(0)


@kernel(fastmath=REASSOCIATE)
def _add_row(x: Any, n: int, total: Any) -> None:
    for j in range(n):
        total[j] += x[j]


@kernel(fastmath=REASSOCIATE)
def _add_four_rows(x: Any, n: int, total: Any) -> None:
    """Rows that follow each other.

    Written for the compiler to make vector code of it: a slice for each row, because an index like
    ``n + j`` might be negative for all it knows.
    """
    first, second, third, fourth = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    for j in range(n):
        total[j] += (first[j] + second[j]) + (third[j] + fourth[j])


@kernel()
def _count_row(x: Any, n: int, zeros: Any) -> None:
    for j in range(n):
        zeros[j] += _i32(x[j] == 0)


@kernel()
def _count_four_rows(x: Any, n: int, zeros: Any) -> None:
    first, second, third, fourth = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    for j in range(n):
        two = _i32(_i32(first[j] == 0) + _i32(second[j] == 0))
        zeros[j] += _i32(two + _i32(_i32(third[j] == 0) + _i32(fourth[j] == 0)))


@kernel()
def add_rows(x: Any, n: int, start: int, channels: int, total: Any) -> None:
    """Add a finite block of channels side by side to `total`, ``(channels,)`` floats."""
    i = min(-start % channels, n)
    if i:
        channel = start % channels
        _add_row(x[:i], i, total[channel : channel + i])
    while n - i >= 4 * channels:
        _add_four_rows(x[i : i + 4 * channels], channels, total)
        i += 4 * channels
    while i < n:
        run = min(channels, n - i)
        _add_row(x[i : i + run], run, total[:run])
        i += run


@kernel()
def count_rows(x: Any, n: int, start: int, channels: int, zeros: Any) -> None:
    """Like `add_rows` for the counts of zeros, ``(channels,)`` integers."""
    i = min(-start % channels, n)
    if i:
        channel = start % channels
        _count_row(x[:i], i, zeros[channel : channel + i])
    while n - i >= 4 * channels:
        _count_four_rows(x[i : i + 4 * channels], channels, zeros)
        i += 4 * channels
    while i < n:
        run = min(channels, n - i)
        _count_row(x[i : i + run], run, zeros[:run])
        i += run


@kernel()
def empty_rows(n: int, part: Any, none: Any, total: Any, zeros: Any) -> None:
    """Add `part`, ``(n,) float32``, and `none`, ``(n,) int32``, to the sums in 64 bits, and clear them."""
    for j in range(n):
        total[j] += part[j]
        zeros[j] += none[j]
        part[j] = 0
        none[j] = 0


@kernel(fastmath=REASSOCIATE)
def _sum_run(x: Any, n: int) -> Any:
    part = x[0] - x[0]
    for j in range(n):
        part += x[j]
    return part


@kernel()
def _count_run(x: Any, n: int) -> Any:
    none = _ZERO
    for j in range(n):
        none = _i32(none + _i32(x[j] == 0))
    return none


@kernel()
def add_runs(x: Any, n: int, start: int, channels: int, inner: int, total: Any) -> None:
    """Add a finite block to per-channel sums, ``(channels,) float64``, a run of `inner` at a time."""
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
def count_runs(x: Any, n: int, start: int, channels: int, inner: int, zeros: Any) -> None:
    """Like `add_runs` for the counts of zeros, ``(channels,) int64``."""
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
def add_slowly(
    x: Any, n: int, start: int, channels: int, inner: int, total: Any, zeros: Any, bad: Any
) -> None:
    """Sums and zeros of a block that may hold NaN or infinities, counted in `bad`."""
    for i in range(n):
        channel = (start + i) // inner % channels
        v = np.float64(x[i])
        if abs(v) < np.inf:
            total[channel] += v
            zeros[channel] += np.int64(v == 0)
        else:
            bad[channel] += 1
