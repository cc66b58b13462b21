"""numba kernels that copy a sample of many tensors at once, and tell how far each has moved since.

A row of the table of samples is ``(address, blocks, width, step, 0)``: `blocks` stretches of `width`
float32, each `step` elements after the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from tdbg_lab.stats.jit import REASSOCIATE, kernel, pointer

__all__ = ["compare_samples", "copy_samples"]


@kernel()
def copy_samples(table: Any, target: int) -> None:
    """Copy all samples to the address `target`, one behind the other."""
    for row in range(len(table)):
        blocks, width, step = table[row, 1], table[row, 2], table[row, 3]
        for block in range(blocks):
            values = carray(pointer(table[row, 0] + 4 * block * step, np.float32), width)
            copy = carray(pointer(target, np.float32), width)
            for i in range(width):
                copy[i] = values[i]
            target += 4 * width


@kernel()
def compare_samples(table: Any, before: int, target: int) -> None:
    """``|new - old| / |old|`` in L2 norms of each sample, float64 at the address `target`.

    `before` is where `copy_samples` has put the old values.
    """
    ratios = carray(pointer(target, np.float64), len(table))
    for row in range(len(table)):
        blocks, width, step = table[row, 1], table[row, 2], table[row, 3]
        moved, size = 0.0, 0.0
        for block in range(blocks):
            values = carray(pointer(table[row, 0] + 4 * block * step, np.float32), width)
            more_moved, more_size = _squares(values, carray(pointer(before, np.float32), width), width)
            moved += more_moved
            size += more_size
            before += 4 * width
        ratios[row] = np.sqrt(moved) / np.sqrt(size)


@kernel(fastmath=REASSOCIATE - {"nnan"})
def _squares(new: Any, old: Any, n: int) -> Any:
    """Sums of squares of the differences, rounded as float32, and of the old values."""
    moved, size = 0.0, 0.0
    for i in range(n):
        difference = np.float64(new[i] - old[i])
        value = np.float64(old[i])
        moved += difference * difference
        size += value * value
    return moved, size
