"""Statistics of values that were saved, without loading the kernels for a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats.block import concat, scalar_block, take
from tdbg_lab.stats.reference import summarize as summarize_slowly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock

__all__ = ["measured"]

_FEW_BYTES = 2**20
_FEW_ARRAYS = 256
"""Up to here numpy is done before the kernels are loaded."""


def measured(arrays: Sequence[NDArray[Any]], axes: Sequence[int | None]) -> StatsBlock:
    """Statistics of arrays, one row each; `axes` as for `tdbg_lab.stats.summarize`."""
    single = np.array([_is_number(array) for array in arrays], bool)
    if not single.any():
        return _measured(arrays, axes)
    numbers = scalar_block([float(array.reshape(-1)[0]) for array in arrays if _is_number(array)])
    if single.all():
        return numbers
    rest = np.flatnonzero(~single).tolist()
    block = concat([numbers, _measured([arrays[i] for i in rest], [axes[i] for i in rest])])
    order = np.empty(len(arrays), np.int64)
    order[single] = np.arange(len(numbers))
    order[~single] = len(numbers) + np.arange(len(rest))
    return take(block, order)


def _is_number(array: NDArray[Any]) -> bool:
    return array.size == 1 and array.dtype.kind in "fiub"


def _measured(arrays: Sequence[NDArray[Any]], axes: Sequence[int | None]) -> StatsBlock:
    if len(arrays) <= _FEW_ARRAYS and sum(array.nbytes for array in arrays) <= _FEW_BYTES:
        return summarize_slowly(arrays, channel_axes=axes)
    from tdbg_lab.stats import summarize

    return summarize(arrays, channel_axes=axes)
