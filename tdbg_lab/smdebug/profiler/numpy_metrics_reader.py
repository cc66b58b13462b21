"""System metrics as matrices: a row for each interval, a column for each reading of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from tdbg_lab.smdebug.exceptions import SMDebugNotImplementedError, SMDebugValueError
from tdbg_lab.smdebug.profiler.system_metrics import S3SystemMetricsReader, described
from tdbg_lab.smdebug.profiler.utils import TimeUnits, to_ns
from tdbg_lab.store.remote.url import is_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["S3NumpySystemMetricsReader"]

_MEMORY: Final = "MemoryUsedPercent"
_LONGEST_INTERVAL_MS: Final = 60_000
_LEAST_ROWS: Final = 2
"""A chunk with fewer readings of each column is not stored."""

Jagged = list[list[Any]]
"""First times of the chunks of a node (us), and of each chunk how many readings each column has."""


class S3NumpySystemMetricsReader(S3SystemMetricsReader):
    """Reads system metrics below an address as matrices, and keeps every reading in files.

    Parameters
    ----------
    s3_trial_path, use_in_memory_cache
        As of `S3SystemMetricsReader`.
    col_names, extra_col_names
        Columns of the matrices, and those that go into the files only: ``<name>#<dimension>``, such as
        ``cpu0#CPUUtilization``.
    col_dict
        Place of each of both; the extra ones come last.
    np_store
        Folder of the files: ``<np_store>/algo-<n>/<first time>#<n>.npy`` with values (int32), and the same
        with `store_time_file_prefix` with times (us, int64). Plain numbers row by row, no header.
    store_chunk_size
        Rows of one file; it has 1 % more.
    group_size
        Rows whose mean is one row of a matrix.
    n_nodes
        Machines.
    frequency
        Time between two readings, ms.
    accumulate_forward, accumulate_minutes
        Write what forward reads gave in so long once more, in one file ``accu_...``.
    n_process, logger
        Kept for the predecessor's scripts.

    Raises
    ------
    SMDebugNotImplementedError
        `np_store` is in a bucket, where the predecessor put pickles.
    """

    separator = "#"
    accu_prefix = "accu_"

    def __init__(
        self,
        s3_trial_path: str | Path,
        use_in_memory_cache: bool,
        col_names: Sequence[str],
        extra_col_names: Sequence[str],
        col_dict: Mapping[str, int],
        np_store: str | Path,
        store_chunk_size: int,
        store_time_file_prefix: str,
        group_size: int,
        n_nodes: int,
        frequency: int,
        accumulate_forward: bool = False,
        accumulate_minutes: int = 20,
        n_process: int | None = None,
        logger: Any = None,
    ) -> None:
        del n_process, logger
        super().__init__(s3_trial_path, use_in_memory_cache)
        if is_url(np_store):
            raise SMDebugNotImplementedError(
                f"np_store is {str(np_store)!r}; expected a folder: no pickles are written into buckets."
            )
        self._columns = dict(col_dict)
        self._n_columns = len(col_names), len(col_names) + len(extra_col_names)
        self._store = Path(np_store).expanduser()
        self._chunk = store_chunk_size
        self._prefix = store_time_file_prefix
        self.group_size = group_size
        self._n_nodes = n_nodes
        self._interval_us = frequency * 1000
        self._longest_gap = max(5, 3 * _LONGEST_INTERVAL_MS // frequency)
        """Rows without a reading that are filled with the one before, or after; more are a pause: 0."""
        self._accumulating = accumulate_forward
        self._accumulated_us = accumulate_minutes * 60 * 10**6
        self._since_us: int | None = None
        self._accumulated: list[list[pd.DataFrame]] = [[] for _ in range(n_nodes)]

    def get_group_size(self) -> int:
        """Rows whose mean is one row of a matrix."""
        return self.group_size

    def set_group_size(self, group_size: int) -> None:
        """Take so many from the next read on."""
        self.group_size = group_size

    def get_events(  # type: ignore[override]  # the predecessor's, too, asks and answers otherwise
        self, start_time: float, end_time: float, forward: bool, unit: TimeUnits = TimeUnits.MICROSECONDS
    ) -> tuple[list[NDArray[np.uint8]], list[list[int]], list[Jagged], list[list[Any]] | None]:
        """What was read from a time until before another one.

        Parameters
        ----------
        forward
            Whether the newest is read, which is accumulated if that was asked for.

        Returns
        -------
        tuple
            A matrix for each node, shape ``(groups, columns)``; times of its first row and behind its last
            (us), none when nothing was read; the chunks stored; those of the accumulated files, if any.

        Raises
        ------
        SMDebugValueError
            A time is no multiple of `frequency` times `group_size`.
        """
        first, end = (to_ns(one, unit) // 1000 for one in (start_time, end_time))
        group_us = self._interval_us * self.group_size
        for one in (first, end):
            if one % group_us:
                raise SMDebugValueError(f"{one} us is no multiple of a group, which is {group_us} us.")
        accumulated = self._accumulated_files(first, end) if forward and self._accumulating else None
        self.refresh_event_file_list()
        nodes = self._readings(first, end)
        if forward and self._accumulating:
            for kept, readings in zip(self._accumulated, nodes, strict=True):
                kept.append(readings)
        jagged = [self._stored(node, readings) for node, readings in enumerate(nodes)]
        rows = pd.concat([readings["row"] for readings in nodes])
        if not len(rows):
            empty = np.zeros((0, self._n_columns[0]), np.uint8)
            return [empty.copy() for _ in nodes], [], jagged, accumulated
        low, high = (int(row) // self.group_size for row in (rows.min(), rows.max()))
        matrices = [self._matrix(readings, low, high + 1) for readings in nodes]
        return matrices, [[first + low * group_us, first + (high + 1) * group_us]], jagged, accumulated

    def _readings(self, first: int, end: int) -> list[pd.DataFrame]:
        """Readings of each node by time: ``row``, ``column``, ``time`` (us) and ``value``."""
        frame = self.samples(first * 1000, end * 1000 - 1)
        places = {
            pair: self._column(*pair) for pair in set(zip(frame["metric"], frame["device"], strict=True))
        }
        columns = [places[pair] for pair in zip(frame["metric"], frame["device"], strict=True)]
        times = frame["time_ns"].to_numpy(np.int64) // 1000
        found = pd.DataFrame(
            {
                "row": (times - first) // self._interval_us,
                "column": np.array(columns, np.int64),
                "time": times,
                "value": np.where(frame["metric"] == "memory", np.ceil(frame["value"]), frame["value"]),
                "node": frame["rank"].to_numpy(np.int64),
            }
        )
        found = found[(found["column"] >= 0) & found["value"].notna()].sort_values("time", kind="stable")
        return [found[found["node"] == node] for node in range(self._n_nodes)]

    def _column(self, metric: str, device: str) -> int:
        """Place of the column of a reading; -1 for one that was not asked for."""
        dimension = described(metric)[1]
        exact = self._columns.get(f"{device}{self.separator}{dimension}")
        if exact is not None:
            return exact
        names = {_MEMORY} if metric == "memory" else {device, dimension} - {""}
        found = [place for key, place in self._columns.items() if key.partition(self.separator)[0] in names]
        return found[0] if len(found) == 1 else -1

    def _matrix(self, readings: pd.DataFrame, low: int, high: int) -> NDArray[np.uint8]:
        """Means of the groups from `low` until before `high`; gaps are filled as `_longest_gap` says."""
        width, size = self._n_columns[0], self.group_size
        rows = np.full(((high - low) * size, width), np.nan)
        shown = readings[readings["column"] < width]
        rows[shown["row"] - low * size, shown["column"]] = shown["value"]  # of several in a row the last
        frame = pd.DataFrame(rows).ffill(limit=self._longest_gap).bfill(limit=self._longest_gap)
        filled = frame.fillna(0.0).to_numpy(np.float64)
        means: NDArray[np.float64] = filled.reshape(-1, size, width).mean(axis=1)
        return means.astype(np.uint8)

    def _stored(self, node: int, readings: pd.DataFrame) -> Jagged:
        """Keep readings in files, chunk by chunk."""
        jagged: Jagged = [[], []]
        for _, chunk in readings.groupby(readings["row"] // self._chunk):
            height = max(self._chunk + self._chunk // 100, int(chunk["column"].value_counts().max()))
            written = self._write(node, chunk, height, "")
            if written is not None:
                jagged[0].append(written[0])
                jagged[1].append(written[1])
        return jagged

    def _accumulated_files(self, first: int, end: int) -> list[list[Any]] | None:
        """Write what was accumulated, once it is enough."""
        if self._since_us is None:
            self._since_us = first
        if end - self._since_us <= self._accumulated_us:
            return None
        found: list[list[Any]] = []
        for node, kept in enumerate(self._accumulated):
            readings = pd.concat(kept) if kept else None
            written = None
            if readings is not None and len(readings):
                height = int(readings["column"].value_counts().max())
                written = self._write(node, readings, height, self.accu_prefix)
            found.append(list(written or ()))
            kept.clear()
        self._since_us = first
        return found

    def _write(
        self, node: int, readings: pd.DataFrame, height: int, prefix: str
    ) -> tuple[int, NDArray[np.int32]] | None:
        """Two files of `height` rows, -1 where nothing was read; first time, and readings of each column."""
        width = self._n_columns[1]
        place = readings.groupby("column").cumcount().to_numpy()
        columns = readings["column"].to_numpy()
        sizes = np.bincount(columns, minlength=width).astype(np.int32)
        if sizes.max() < _LEAST_ROWS:
            return None
        values = np.full((height, width), -1, np.int32)
        times = np.full((height, width), -1, np.int64)
        values[place, columns] = readings["value"].to_numpy().astype(np.int32)
        times[place, columns] = readings["time"]
        first = int(times[0, sizes >= _LEAST_ROWS].min())
        folder = self._store / f"algo-{node + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{first}{self.separator}{node + 1}.npy"
        values.tofile(folder / f"{prefix}{name}")
        times.tofile(folder / f"{prefix}{self._prefix}{self.separator}{name}")
        return first, sizes
