"""Statistics of tensors in one pass, with a histogram that merges exactly.

`summarize` measures numpy arrays, `tdbg_lab.stats.tensors.summarize_tensors` measures torch tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.stats.bins import CENTER, LOWER, N_BINS, RELATIVE_ERROR, UPPER, bin_of, ordered
from tdbg_lab.stats.block import concat, dense, empty_block, merge, quantile, scalar_block, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock

__all__ = [
    "CENTER",
    "LOWER",
    "N_BINS",
    "RELATIVE_ERROR",
    "UPPER",
    "bin_of",
    "concat",
    "dense",
    "empty_block",
    "merge",
    "ordered",
    "quantile",
    "scalar_block",
    "summarize",
    "take",
]


def summarize(
    arrays: Sequence[NDArray[Any]], *, channel_axes: Sequence[int | None] | None = None
) -> StatsBlock:
    """Statistics of numpy arrays, one row each: the numba kernels, or numpy where numba is missing.

    See `tdbg_lab.stats.reference.summarize`.
    """
    from tdbg_lab.stats import cpu

    return cpu.summarize(arrays, channel_axes=channel_axes)
