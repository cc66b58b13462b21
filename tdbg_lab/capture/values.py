"""Values that the user records: tensors of any framework, arrays, numbers."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock

__all__ = ["described", "dtype_text", "label_rows", "number", "rows_of", "summary"]


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


@cache
def dtype_text(dtype: np.dtype[Any]) -> str:
    """Text of a type of numpy, which takes 20 us to put together anew."""
    return str(dtype)


def described(value: Any) -> tuple[str, tuple[int, ...]]:
    """Name of the dtype and shape."""
    if _is_torch(value):
        return str(value.dtype).rpartition(".")[2], tuple(value.shape)
    array = np.asarray(value)
    return dtype_text(array.dtype), array.shape


def number(value: Any) -> float:
    """A scalar; a tensor that still has its graph is read without a warning about it."""
    return float(value.detach() if _is_torch(value) else value)


def summary(value: Any) -> StatsBlock:
    """Statistics of one value, one row."""
    if _is_torch(value):
        from tdbg_lab.stats.tensors import summarize_tensors

        return summarize_tensors([value.detach()])
    from tdbg_lab.stats import summarize

    return summarize([np.asarray(value)])


def label_rows(labels: Any, limit: int | None, codes: dict[str, int]) -> NDArray[Any]:
    """Like `rows_of`; texts become numbers, the same text always the same one.

    Parameters
    ----------
    labels, limit
        As for `rows_of`.
    codes
        Number of each text seen so far; new ones are added.
    """
    rows = rows_of(labels, limit)
    if rows.dtype.kind not in "USO":
        return rows
    return np.array([codes.setdefault(str(one), len(codes)) for one in rows.tolist()], dtype=np.int64)


def rows_of(value: Any, limit: int | None) -> NDArray[Any]:
    """A copy of the values; at most `limit` rows of the first dimension, evenly spread."""
    if _is_torch(value):
        from tdbg_lab.capture.pytorch.values import raw_array

        return raw_array(value, limit)
    array = np.asarray(value)
    if limit is not None and array.ndim and len(array) > limit:
        array = array[np.arange(limit) * len(array) // limit]
    return np.array(array, copy=True)
