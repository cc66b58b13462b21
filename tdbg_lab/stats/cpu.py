"""The statistics on the CPU: numba kernels, many tensors in one call, the GIL released.

Large tensors are cut into pieces that a small pool of threads shares with the caller. The kernels
themselves are single-threaded: numba's parallel mode stands on OpenMP, which aborts forked children.

The first call in a process loads the compiled kernels from numba's cache, or compiles them. `warm_up`
does that ahead of time, off the training thread. While another thread is warming up, `summarize`
answers from the numpy reference instead of waiting: the same counts, slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats import reference
from tdbg_lab.stats.block import concat, empty_block, take
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.pointers import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock

__all__ = ["ready", "summarize", "warm_up"]


def summarize(
    arrays: Sequence[NDArray[Any]],
    *,
    channel_axes: Sequence[int | None] | None = None,
    threads: int | None = None,
) -> StatsBlock:
    """Statistics of each array, one row each; see `tdbg_lab.stats.reference.summarize`.

    Parameters
    ----------
    arrays, channel_axes
        As for the reference. Dense arrays, permuted ones too, are read in place; others are copied.
    threads : int, optional
        At most so many threads, the caller among them; by default one a usable core, up to 8.
    """
    axes = channel_axes if channel_axes is not None else (None,) * len(arrays)
    if not engine().usable():
        return reference.summarize(arrays, channel_axes=axes)
    described = [describe(array, axis) for array, axis in zip(arrays, axes, strict=True)]
    block = engine().measure([entry[0] for entry in described if entry is not None], threads=threads)
    if len(block) == len(arrays):
        return block
    refused = [f"dtype {np.asarray(arrays[i]).dtype} is not numeric" for i in _rows(described, found=False)]
    order = np.argsort(_rows(described, found=True) + _rows(described, found=False))
    return take(concat([block, *(empty_block(1, reason) for reason in refused)]), order)


def warm_up() -> None:
    """Load the kernels; where the cache has none yet, wait for a child process that compiles them.

    Safe from any thread, and again; never raises. Meant for a thread beside training.
    """
    engine().warm_up()


def ready() -> bool:
    """Whether the kernels can be called without delay."""
    return engine().ready


def _rows(described: Sequence[Any], *, found: bool) -> list[int]:
    return [row for row, entry in enumerate(described) if (entry is not None) is found]
