"""The lists of one record batch, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.parts import list_values, reason_values, take_lists

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["BatchLists"]


class BatchLists:
    """Reads a few rows of the lists of a batch.

    A live segment holds a batch a step, and a picture of one tensor wants one row of each. Arrow takes
    80 microseconds to pick that row, however short it is; a column whose lists have been found costs one.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._columns: dict[str, tuple[NDArray[np.int64], NDArray[Any]]] = {}

    def lists(self, name: str, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Lengths ``(n,)`` and values of the lists of these rows, in their order.

        Raises
        ------
        ValueError
            If a bin is none.
        """
        ends, values = self._column(name)
        if len(rows) == 1:
            first, last = ends[rows[0] : rows[0] + 2]
            return np.array([last - first]), values[first:last]
        return take_lists(np.diff(ends), values, rows)

    def reasons(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Reasons of these rows: text or None."""
        array = self._batch[name]
        if array.null_count == len(array):
            return np.full(len(rows), None, object)
        return reason_values(array)[rows]

    def _column(self, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Where the list of each row begins, shape ``(n + 1,)``, and the values of all of them."""
        if name not in self._columns:
            lengths, values = list_values(self._batch[name], name)
            self._columns[name] = np.concatenate(([0], np.cumsum(lengths))), values
        return self._columns[name]
