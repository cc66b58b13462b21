"""A live segment of the stats stream, decoded as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.batch_lists import BatchLists
from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.parts import (
    LISTS,
    REASON,
    Names,
    Part,
    Query,
    check_lists,
    number_values,
    parse_key,
)
from tdbg_lab.store.schema import MODE_CODE, SCALARS, STATS
from tdbg_lab.store.seal import step_table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

_KEY_COLUMNS = ("tensor", "kind", "module", "dtype", "shape", "collections")
_NUMBERS = ("time_ns", *SCALARS)


class _Growing:
    """A column that grows at its end; earlier views stay valid."""

    def __init__(self, dtype: Any) -> None:
        self._values = np.empty(1024, dtype)
        self._n = 0

    def append(self, values: Any, n: int) -> None:
        """Add `n` values, or one value `n` times."""
        if self._n + n > len(self._values):
            larger = np.empty(max(2 * len(self._values), self._n + n), self._values.dtype)
            larger[: self._n] = self._values[: self._n]
            self._values = larger
        self._values[self._n : self._n + n] = values
        self._n += n

    @property
    def values(self) -> NDArray[Any]:
        return self._values[: self._n]


class LiveStats:
    """Holds the rows of one live segment. `poll` reads what is new."""

    def __init__(self, path: Path, names: Names) -> None:
        self.path = path
        self._names = names
        self._reader = BatchReader(path, STATS)
        self._batches: list[BatchLists] = []
        self._first_rows: list[int] = [0]
        self._last_keys: tuple[pa.RecordBatch, NDArray[np.int64]] | None = None
        self._steps: list[tuple[int, int, int]] = []
        self._tensor, self._step, self._mode = _Growing(np.int64), _Growing(np.int64), _Growing(np.int8)
        kinds = {field.name: field.type.to_pandas_dtype() for field in STATS if field.name in _NUMBERS}
        self._numbers = {name: _Growing(kinds[name]) for name in _NUMBERS}

    @property
    def problem(self) -> str | None:
        """Why reading stopped, or None."""
        return self._reader.problem

    def poll(self) -> bool:
        """Read what is new; True when there was something.

        Raises
        ------
        OSError
            If the file is gone.
        """
        found = False
        for batch in self._reader.read():
            if batch.num_rows and self.problem is None:
                found = self._add(batch) or found
        if self._reader.ended and self._batches:
            # It waits for being sealed: its lists, most of its bytes, are read again when wanted.
            self._batches, self._last_keys = [], None
        return found

    def steps(self) -> NDArray[np.int64]:
        """Mode code, step and time_ns, shape ``(S, 3)``."""
        table = np.array(self._steps, np.int64).reshape(-1, 3)
        return step_table(table[:, 0], table[:, 1], table[:, 2])

    def read(self, query: Query) -> list[Part]:
        """Rows that `query` asks for.

        Raises
        ------
        OSError, ValueError
            If the file is gone or its rows are broken.
        """
        step, tensor = self._step.values, self._tensor.values
        chosen = (self._mode.values == query.mode) & (step >= query.first) & (step <= query.last)
        if query.tensors is not None:
            few = len(query.tensors) == 1
            chosen &= tensor == query.tensors[0] if few else np.isin(tensor, query.tensors)
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return []
        part = Part(tensor[rows], step[rows])
        for name in query.columns:
            if name in self._numbers:
                part.columns[name] = self._numbers[name].values[rows]
        wanted = [name for name in query.columns if name in LISTS or name == REASON]
        if wanted:
            self._read_lists(part, rows, wanted)
        return [part]

    def _read_lists(self, part: Part, rows: NDArray[np.int64], names: list[str]) -> None:
        batch_of = np.searchsorted(self._first_rows, rows, side="right") - 1
        cuts = np.flatnonzero(np.diff(batch_of)) + 1
        batches = self._batches or self._read_again()
        found: dict[str, list[Any]] = {name: [] for name in names}
        for group in np.split(np.arange(len(rows)), cuts):
            number = batch_of[group[0]]
            indices = rows[group] - self._first_rows[number]
            for name in names:
                read = batches[number].reasons if name == REASON else batches[number].lists
                found[name].append(read(name, indices))
        for name, pieces in found.items():
            if name == REASON:
                part.columns[name] = np.concatenate(pieces)
            else:
                lengths, values = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
                part.lists[name] = (lengths, values)
        check_lists(part)

    def _read_again(self) -> list[BatchLists]:
        batches = [BatchLists(batch) for batch in BatchReader(self.path, STATS).read() if batch.num_rows]
        if len(batches) < len(self._first_rows) - 1:
            raise OSError(f"{self.path.name} was cut")
        return batches

    def _add(self, batch: pa.RecordBatch) -> bool:
        try:
            mode, steps = _steps_of(batch)
            tensors = self._identify(batch, mode)
        except ValueError as error:
            self._reader.problem = f"{self.path.name}: {str(error)[:200]}"
            return False
        n = batch.num_rows
        for name in _NUMBERS:
            self._numbers[name].append(number_values(batch[name]), n)
        self._tensor.append(tensors, n)
        self._step.append(steps, n)
        self._mode.append(mode, n)
        self._batches.append(BatchLists(batch))
        self._first_rows.append(self._first_rows[-1] + n)
        times = self._numbers["time_ns"].values
        for row in np.flatnonzero(np.append(steps[1:] != steps[:-1], True)):  # the last row of each step
            self._steps.append((mode, int(steps[row]), int(times[row - n])))
        return True

    def _identify(self, batch: pa.RecordBatch, mode: int) -> NDArray[np.int64]:
        last = self._last_keys
        if last is not None and all(batch[name].equals(last[0][name]) for name in _KEY_COLUMNS):
            self._names.seen(last[1], 1 << mode)
            return last[1]
        columns = [batch[name].to_pylist() for name in _KEY_COLUMNS]
        keys = [parse_key(values) for values in zip(*columns, strict=True)]
        tensors = np.array([self._names.add(key, 1 << mode) for key in keys], np.int64)
        self._last_keys = (batch, tensors)
        return tensors


def _steps_of(batch: pa.RecordBatch) -> tuple[int, NDArray[np.int64]]:
    """Mode code and step of each row of a batch: mostly one step, several where only numbers were logged.

    Raises
    ------
    ValueError
        If a row has no step, or the batch several modes or an unknown one.
    """
    mode, steps = batch["mode"][0].as_py(), batch["step"]
    if steps.null_count or batch["mode"].null_count or mode not in MODE_CODE:
        raise ValueError("a batch has no step or no known mode")
    if len(batch["mode"].unique()) > 1:
        raise ValueError("a batch holds more than one mode")
    return MODE_CODE[mode], steps.to_numpy()
