"""A sealed segment of the stats stream: an index in memory, columns from a cache or the file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.limits import COLUMN_CACHE_BYTES
from tdbg_lab.store.live import list_values, number_values
from tdbg_lab.store.parquet import SealedFile
from tdbg_lab.store.parts import LISTS, Names, Part, Query, parse_key, take_lists
from tdbg_lab.store.schema import MODES
from tdbg_lab.store.seal import KEYS_KEY, RUNS_KEY, STEPS_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_Key = tuple[str, int, str]
_Column = tuple[Any, ...]


class ColumnCache:
    """Decoded columns of row groups, least recently used out first. Thread-safe."""

    def __init__(self, limit_bytes: int = COLUMN_CACHE_BYTES) -> None:
        self._limit = limit_bytes
        self._columns: OrderedDict[_Key, _Column] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Column | None:
        """The column, or None when it is not here."""
        with self._lock:
            found = self._columns.get(key)
            if found is not None:
                self._columns.move_to_end(key)
            return found

    def put(self, key: _Key, column: _Column) -> None:
        """Keep a column."""
        with self._lock:
            old = self._columns.pop(key, ())
            self._columns[key] = column
            self._bytes += _size(column) - _size(old)
            while self._bytes > self._limit and len(self._columns) > 1:
                self._bytes -= _size(self._columns.popitem(last=False)[1])


def _size(column: _Column) -> int:
    return sum(array.nbytes for array in column)


class SealedStats:
    """One sealed segment.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is not a segment of ours.
    """

    def __init__(self, path: Path, names: Names, cache: ColumnCache) -> None:
        self.path = path
        self._file = SealedFile(path, "stats")
        self._cache = cache
        self.uid = str(self._file.metadata["uid"])
        self.problem: str | None = None
        self._steps: NDArray[np.int64] = self._file.array(STEPS_KEY, "<i8", 3)
        runs = self._file.array(RUNS_KEY, "<i4", 4).astype(np.int64)
        ids = self._identify(names, runs)
        self._check(runs)
        self._runs = np.column_stack([ids[runs[:, 0]], runs[:, 1:]])
        """Tensor id, mode code, first row, rows."""

    def steps(self) -> NDArray[np.int64]:
        """Mode code, step and time_ns, shape ``(S, 3)``."""
        return self._steps

    def poll(self) -> bool:
        """A sealed segment does not change."""
        return False

    def read(self, query: Query) -> list[Part]:
        """Rows that `query` asks for.

        Raises
        ------
        OSError, ValueError
            If the file is gone or broken.
        """
        steps = self._steps[self._steps[:, 0] == query.mode, 1]
        if not len(steps) or steps[0] > query.last or steps[-1] < query.first:
            return []
        runs = self._runs[self._runs[:, 1] == query.mode]
        if query.tensors is not None:
            runs = runs[np.isin(runs[:, 0], query.tensors)]
        if not len(runs):
            return []
        return self._read_runs(runs, query)

    def _read_runs(self, runs: NDArray[np.int64], query: Query) -> list[Part]:
        starts = self._file.group_starts
        first = np.searchsorted(starts, runs[:, 2], side="right") - 1
        last = np.searchsorted(starts, runs[:, 2] + runs[:, 3] - 1, side="right") - 1
        groups = sorted({g for a, b in zip(first, last, strict=True) for g in range(a, b + 1)})
        columns = self._columns(groups, ("step", *query.columns))
        parts = []
        for group in groups:
            begin = np.maximum(runs[:, 2], starts[group]) - starts[group]
            end = np.minimum(runs[:, 2] + runs[:, 3], starts[group + 1]) - starts[group]
            inside = end > begin
            parts.append(_part(columns[group], runs[inside, 0], begin[inside], end[inside], query))
        return [part for part in parts if len(part.step)]

    def _columns(self, groups: list[int], names: tuple[str, ...]) -> dict[int, dict[str, _Column]]:
        found: dict[int, dict[str, _Column]] = {}
        for group in groups:
            cached = {name: self._cache.get((self.uid, group, name)) for name in names}
            have = {name: column for name, column in cached.items() if column is not None}
            missing = [name for name in names if name not in have]
            if missing:
                table = self._file.read([group], missing)
                for name in missing:
                    array = table[name].combine_chunks()
                    have[name] = list_values(array, name) if name in LISTS else (number_values(array),)
                    self._cache.put((self.uid, group, name), have[name])
            found[group] = have
        return found

    def _identify(self, names: Names, runs: NDArray[np.int64]) -> NDArray[np.int64]:
        described = self._file.json(KEYS_KEY)
        if not isinstance(described, list):
            raise ValueError(f"{self.path.name} has a broken index")  # noqa: TRY004 - the content is wrong
        modes = np.zeros(len(described), np.int64)
        ids = np.zeros(len(described), np.int64)
        if len(runs) and (
            runs[:, 0].max() >= len(described) or runs.min() < 0 or runs[:, 1].max() >= len(MODES)
        ):
            raise ValueError(f"{self.path.name} has a broken index")
        np.bitwise_or.at(modes, runs[:, 0], 1 << runs[:, 1])
        try:
            order = sorted(range(len(described)), key=lambda i: int(described[i][6]))
            for i in order:
                ids[i] = names.add(parse_key(described[i][:6]), int(modes[i]))
        except (TypeError, IndexError, KeyError) as error:
            raise ValueError(f"{self.path.name} has a broken index") from error
        return ids

    def _check(self, runs: NDArray[np.int64]) -> None:
        if int(runs[:, 3].sum()) != self._file.rows or (runs[:, 2] + runs[:, 3] > self._file.rows).any():
            raise ValueError(f"{self.path.name} has a broken index")


def _part(
    columns: dict[str, _Column],
    tensors: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    query: Query,
) -> Part:
    sizes = end - begin
    rows = np.arange(sizes.sum()) + np.repeat(begin - (np.cumsum(sizes) - sizes), sizes)
    step = columns["step"][0][rows]
    tensor = np.repeat(tensors, sizes)
    chosen = (step >= query.first) & (step <= query.last)
    if not chosen.all():
        rows, step, tensor = rows[chosen], step[chosen], tensor[chosen]
    part = Part(tensor, step)
    for name in query.columns:
        if name in LISTS:
            part.lists[name] = take_lists(columns[name][0], columns[name][1], rows)
        else:
            part.columns[name] = columns[name][0][rows]
    return part
