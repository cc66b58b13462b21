"""Values that the user records: tensors of any framework, arrays, numbers."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.capture.recorder import Recorder
    from tdbg_lab.records import TensorKey

__all__ = [
    "add_labels",
    "add_number",
    "add_rows",
    "add_summary",
    "described",
    "dtype_text",
    "label_rows",
    "rows_of",
]

_REGISTERED = 2
"""``isbuiltin`` of a type that another package than numpy brings."""


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


def add_number(recorder: Recorder, key: TensorKey, value: Any) -> None:
    """Add a row with one number; nothing waits for a tensor on a GPU."""
    if _is_torch(value):
        from tdbg_lab.capture.pytorch.measuring import record_number

        record_number(recorder, key, value)
    else:
        recorder.add_scalar(key, float(value))


def add_summary(recorder: Recorder, key: TensorKey, value: Any) -> str | None:
    """Add a row of statistics of one value; why it has none, where that is known at once."""
    if _is_torch(value):
        from tdbg_lab.capture.pytorch.measuring import on_gpu, record_tensors
        from tdbg_lab.stats.tensors import summarize_tensors

        if on_gpu(value):
            record_tensors(recorder, [key], [value.detach()])
            return None
        block = summarize_tensors([value.detach()])
    else:
        from tdbg_lab.stats import summarize

        block = summarize([np.asarray(value)])
    recorder.add([key], block)
    return block.reason(0)


def add_rows(recorder: Recorder, name: str, value: Any, limit: int | None) -> None:
    """Add a copy of the values; at most `limit` rows of the first dimension, evenly spread."""
    if _is_torch(value):
        from tdbg_lab.capture.pytorch.raw_values import record_raw

        record_raw(recorder, name, value, limit)
    else:
        recorder.add_raw(name, rows_of(value, limit))


def add_labels(recorder: Recorder, name: str, labels: Any, limit: int | None, codes: dict[str, int]) -> None:
    """Add labels of rows as `add_rows` does; texts become numbers, see `label_rows`."""
    if _is_torch(labels):
        add_rows(recorder, name, labels, limit)
    else:
        recorder.add_raw(name, label_rows(labels, limit, codes))


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
    """A copy of the values; at most `limit` rows of the first dimension, evenly spread.

    bfloat16, float8 and the like become float32, because numpy does not know them.
    """
    if _is_torch(value):
        from tdbg_lab.capture.pytorch.values import raw_array

        return raw_array(value, limit)
    array = np.asarray(value)
    if limit is not None and array.ndim and len(array) > limit:
        array = array[np.arange(limit) * len(array) // limit]
    if array.dtype.isbuiltin == _REGISTERED:
        return array.astype(np.float32)
    return np.array(array, copy=True)
