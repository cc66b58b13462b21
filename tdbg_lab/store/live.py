"""A live segment of the stats stream, decoded as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.parts import LIST_DTYPES, LISTS, Names, Part, Query, join, parse_key
from tdbg_lab.store.schema import MODE_CODE, SCALARS, STATS
from tdbg_lab.store.seal import step_table

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_KEY_COLUMNS = ("tensor", "kind", "module", "dtype", "shape", "collections")
_NUMBERS = ("step", "micro", "time_ns", *SCALARS)


class LiveStats:
    """Holds the rows of one live segment. `poll` reads what is new."""

    def __init__(self, path: Path, names: Names) -> None:
        self.path = path
        self._names = names
        self._reader = BatchReader(path, STATS)
        self._batches: list[pa.RecordBatch] = []
        self._tensors: list[NDArray[np.int64]] = []
        self._modes: list[int] = []
        self._last_keys: tuple[pa.RecordBatch, NDArray[np.int64]] | None = None
        self._steps: list[tuple[int, int, int]] = []

    @property
    def problem(self) -> str | None:
        """Why reading stopped, or None."""
        return self._reader.problem

    @property
    def uid(self) -> str:
        """Name of the segment for good; empty until its first bytes are there."""
        return str(self._reader.metadata.get("uid", ""))

    def poll(self) -> bool:
        """Read what is new; True when there was something.

        Raises
        ------
        OSError
            If the file is gone.
        """
        found = False
        for batch in self._reader.read():
            if batch.num_rows:
                found = self._add(batch) or found
        return found

    def steps(self) -> NDArray[np.int64]:
        """Mode code, step and time_ns, shape ``(S, 3)``."""
        table = np.array(self._steps, np.int64).reshape(-1, 3)
        return step_table(table[:, 0], table[:, 1], table[:, 2]) if len(table) else table

    def read(self, query: Query) -> list[Part]:
        """Rows that `query` asks for."""
        wanted = None if query.tensors is None else np.array(query.tensors, np.int64)
        parts = []
        for batch, tensors, (mode, step, _) in zip(self._batches, self._tensors, self._steps, strict=True):
            if mode != query.mode or not query.first <= step <= query.last:
                continue
            rows = np.arange(len(tensors)) if wanted is None else np.flatnonzero(np.isin(tensors, wanted))
            if len(rows):
                parts.append(_part(batch, tensors, rows, query))
        return [join(parts, query)] if parts else []

    def _add(self, batch: pa.RecordBatch) -> bool:
        modes = batch["mode"].unique().to_pylist()
        steps = batch["step"].to_numpy()
        if len(modes) != 1 or modes[0] not in MODE_CODE or np.any(steps != steps[0]):
            self._reader.problem = f"{self.path.name}: a batch holds more than one step"
            return False
        try:
            mode = MODE_CODE[modes[0]]
            tensors = self._identify(batch, mode)
        except ValueError as error:
            self._reader.problem = f"{self.path.name}: {str(error)[:200]}"
            return False
        self._batches.append(batch)
        self._tensors.append(tensors)
        self._steps.append((mode, int(steps[0]), int(batch["time_ns"][0].as_py())))
        return True

    def _identify(self, batch: pa.RecordBatch, mode: int) -> NDArray[np.int64]:
        last = self._last_keys
        if last is not None and all(batch[name].equals(last[0][name]) for name in _KEY_COLUMNS):
            for i in last[1]:
                self._names.modes[i] |= 1 << mode
            return last[1]
        columns = [batch[name].to_pylist() for name in _KEY_COLUMNS]
        keys = [parse_key(values) for values in zip(*columns, strict=True)]
        tensors = np.array([self._names.add(key, 1 << mode) for key in keys], np.int64)
        self._last_keys = (batch, tensors)
        return tensors


def _part(batch: pa.RecordBatch, tensors: NDArray[np.int64], rows: NDArray[np.int64], query: Query) -> Part:
    part = Part(tensors[rows], batch["step"].to_numpy()[rows])
    indices = pa.array(rows)
    for name in query.columns:
        if name in LISTS:
            part.lists[name] = list_values(batch[name].take(indices), name)
        else:
            part.columns[name] = number_values(batch[name])[rows]
    return part


def number_values(array: Any) -> NDArray[Any]:
    """A numeric column; nulls, which we never write, become 0 or NaN."""
    if array.null_count:
        array = array.fill_null(0)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def list_values(array: pa.ListArray, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Lengths and values of a column of lists."""
    values = number_values(array.flatten()).astype(LIST_DTYPES[name], copy=False)
    lengths = number_values(array.value_lengths()).astype(np.int64)
    return lengths, values
