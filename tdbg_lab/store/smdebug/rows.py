"""The stats table of a store: one row per tensor, step and worker, measured when it is asked for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import StoreError
from tdbg_lab.stats.block import concat, take
from tdbg_lab.store.parts import LISTS, REASON, Part, Query
from tdbg_lab.store.schema import COUNTS, FLOATS
from tdbg_lab.store.smdebug.bounds import BATCH_BYTES, LIST_CACHE_BYTES
from tdbg_lab.store.smdebug.measure import measured
from tdbg_lab.store.smdebug.naming import channel_axis
from tdbg_lab.store.smdebug.reduced import reduced_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock, TensorKey
    from tdbg_lab.store.smdebug.index_file import IndexFile
    from tdbg_lab.store.smdebug.store import SmdebugStore

__all__ = ["Row", "Rows"]

_UNKNOWN, _KNOWN, _NONE = 0, 1, 2
"""States of a row: not measured, measured, nothing to be had."""


@dataclass(frozen=True, slots=True)
class Row:
    """Where a row comes from."""

    file: IndexFile
    mode: int
    """Mode code."""
    rank: int
    time_ns: int


class TensorRows:
    """Rows of one tensor, in the order their files were met."""

    def __init__(self, key: TensorKey) -> None:
        self.key = key
        self.rows: list[Row] = []
        self.reasons: dict[int, str] = {}
        self._n = -1
        self._places = np.empty((4, 0), np.int64)
        self.state = np.empty(0, np.int8)
        self.counts = np.empty((len(COUNTS), 0), np.int64)
        self.floats = np.empty((len(FLOATS), 0))
        self.batch = np.empty((2, 0), np.int64)
        """Number of the batch that holds the histogram of each row, and its row there."""

    def settle(self) -> NDArray[np.int64]:
        """Make room for new rows; step, mode, rank and time of all, shape ``(4, R)``."""
        n = len(self.rows)
        if n != self._n:
            new = [(row.file.step, row.mode, row.rank, row.time_ns) for row in self.rows[max(self._n, 0) :]]
            fresh = np.array(new, np.int64).reshape(-1, 4).T
            self._places = np.concatenate([self._places, fresh], axis=1)
            self.state = _grown(self.state, n, _UNKNOWN)
            self.counts, self.floats = _grown(self.counts, n, 0), _grown(self.floats, n, np.nan)
            self.batch = _grown(self.batch, n, -1)
            self._n = n
        return self._places

    def put(self, rows: NDArray[np.int64], block: StatsBlock, batch: int, places: NDArray[np.int64]) -> None:
        """Take in measured rows: rows `places` of a block."""
        for values, name in zip(self.counts, COUNTS, strict=True):
            values[rows] = getattr(block, name)[places]
        for floats, name in zip(self.floats, FLOATS, strict=True):
            floats[rows] = getattr(block, name)[places]
        self.state[rows] = _KNOWN
        self.batch[0, rows], self.batch[1, rows] = batch, places
        if block.reasons:
            for row, place in zip(rows.tolist(), places.tolist(), strict=True):
                reason = block.reasons[place]
                if reason is not None:
                    self.reasons[row] = reason


_Job = tuple[TensorRows, int]


class Rows:
    """Rows of many tensors. Numbers are kept once measured, histograms within bounds."""

    def __init__(self, store: SmdebugStore) -> None:
        self._store = store
        self._tensors: list[TensorRows] = []
        self._blocks: OrderedDict[int, StatsBlock] = OrderedDict()
        self._bytes = 0
        self._batches = 0
        self.framework = ""

    def add(self, key: TensorKey) -> None:
        """One more tensor; its number is the count of those before it."""
        self._tensors.append(TensorRows(key))

    def __getitem__(self, tensor: int) -> TensorRows:
        return self._tensors[tensor]

    def read(self, query: Query, rank: int | None) -> Part:
        """Rows that fit, by tensor and in the order they were met."""
        tensors = range(len(self._tensors)) if query.tensors is None else query.tensors
        chosen = [(tensor, *self._choose(self._tensors[tensor], query, rank)) for tensor in tensors]
        chosen = [item for item in chosen if len(item[1])]
        held: dict[int, StatsBlock] = {}
        if any(name != "time_ns" for name in query.columns):
            lists = any(name in LISTS for name in query.columns)
            held = self._measure(chosen, lists=lists)
            chosen = [self._drop_unread(*item, held if lists else None) for item in chosen]
        return self._part(chosen, query, held)

    def _choose(
        self, tensor: TensorRows, query: Query, rank: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        places = tensor.settle()
        step, mode, ranks, _ = places
        fits = (mode == query.mode) & (step >= query.first) & (step <= query.last)
        if rank is not None:
            fits &= ranks == rank
        rows = np.flatnonzero(fits)
        return rows, places[:, rows]

    def _drop_unread(
        self,
        tensor: int,
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        held: dict[int, StatsBlock] | None,
    ) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """Leave out rows that could not be measured, or whose lists, when they are wanted, are gone."""
        table = self._tensors[tensor]
        here = table.state[rows] == _KNOWN
        if held is not None:
            here &= np.isin(table.batch[0, rows], list(held))
        return tensor, rows[here], places[:, here]

    def _part(
        self,
        chosen: Sequence[tuple[int, NDArray[np.int64], NDArray[np.int64]]],
        query: Query,
        held: dict[int, StatsBlock],
    ) -> Part:
        tables = [(self._tensors[tensor], rows, places) for tensor, rows, places in chosen]
        part = Part(
            _joined([np.full(len(rows), tensor, np.int64) for tensor, rows, _ in chosen], np.int64),
            _joined([places[0] for _, _, places in tables], np.int64),
        )
        for name in query.columns:
            if name in LISTS:
                part.lists[name] = _lists(tables, held, name)
            elif name == REASON:
                reasons = [tensor.reasons.get(row) for tensor, rows, _ in tables for row in rows.tolist()]
                part.columns[name] = np.array([*reasons, None], object)[:-1]
            else:
                part.columns[name] = _joined(
                    [_column(tensor, rows, places, name) for tensor, rows, places in tables],
                    np.float64 if name in FLOATS else np.int64,
                )
        return part

    def _measure(
        self, chosen: Sequence[tuple[int, NDArray[np.int64], NDArray[np.int64]]], *, lists: bool
    ) -> dict[int, StatsBlock]:
        """Measure what is not known; blocks of lists that the answer needs, by batch."""
        held: dict[int, StatsBlock] = {}
        by_file: dict[int, tuple[IndexFile, list[_Job]]] = {}
        for tensor, rows, _ in chosen:
            table = self._tensors[tensor]
            missing = table.state[rows] == _UNKNOWN
            if lists:
                batch = table.batch[0, rows]
                kept = {b: self._blocks[b] for b in np.unique(batch).tolist() if b in self._blocks}
                missing |= (table.state[rows] == _KNOWN) & ~np.isin(batch, list(kept))
                held.update(kept)
            for row in rows[missing].tolist():
                file = table.rows[row].file
                by_file.setdefault(id(file), (file, []))[1].append((table, row))
        self._measure_files(by_file.values(), held, lists=lists)
        return held

    def _measure_files(
        self, files: Iterable[tuple[IndexFile, list[_Job]]], held: dict[int, StatsBlock], *, lists: bool
    ) -> None:
        """Read file by file, and measure whenever enough has come together."""
        jobs: list[_Job] = []
        arrays: list[NDArray[Any] | StatsBlock] = []
        size = 0
        for file, wanted in files:
            for job, found in zip(wanted, self._values(file, wanted), strict=True):
                if found is not None:
                    jobs.append(job)
                    arrays.append(found)
                    size += found.nbytes if isinstance(found, np.ndarray) else 0
            if size > BATCH_BYTES:
                self._put(jobs, arrays, held, lists=lists)
                jobs, arrays, size = [], [], 0
        if jobs:
            self._put(jobs, arrays, held, lists=lists)

    def _values(self, file: IndexFile, jobs: Sequence[_Job]) -> list[NDArray[Any] | StatsBlock | None]:
        """Values of tensors in one file; a finished row where only reductions were saved."""
        values = file.layout.values
        names = [table.key.name for table, _ in jobs]
        positions = [values[name] for name in names if name in values]
        try:
            read = iter(self._store.peek(file, positions))
            found: list[NDArray[Any] | StatsBlock | None] = [
                next(read) if name in values else reduced_row(self._store, file, name) for name in names
            ]
        except StoreError as error:
            if len(jobs) > 1:  # one broken record shall not hide the others
                return [found for job in jobs for found in self._values(file, [job])]
            self._store.note(f"{file.step} {file.worker}", str(error))
            return [None]
        for (table, row), value in zip(jobs, found, strict=True):
            if value is None:  # a shape only
                table.state[row] = _NONE
        return found

    def _put(
        self,
        jobs: Sequence[_Job],
        found: Sequence[NDArray[Any] | StatsBlock],
        held: dict[int, StatsBlock],
        *,
        lists: bool,
    ) -> None:
        block = self._summarize(jobs, found)
        self._batches += 1
        by_tensor: dict[int, tuple[TensorRows, list[int], list[int]]] = {}
        for place, (table, row) in enumerate(jobs):
            _, rows, places = by_tensor.setdefault(id(table), (table, [], []))
            rows.append(row)
            places.append(place)
        for table, rows, places in by_tensor.values():
            table.put(np.array(rows), block, self._batches, np.array(places))
        self._keep(self._batches, block)
        if lists:
            held[self._batches] = block

    def _summarize(self, jobs: Sequence[_Job], found: Sequence[NDArray[Any] | StatsBlock]) -> StatsBlock:
        """Statistics of arrays, and finished rows among them, in their order."""
        is_array = [isinstance(item, np.ndarray) for item in found]
        arrays = [item for item in found if isinstance(item, np.ndarray)]
        kinds = [table.key.kind for (table, _), yes in zip(jobs, is_array, strict=True) if yes]
        axes = [channel_axis(k, a.shape, self.framework) for k, a in zip(kinds, arrays, strict=True)]
        blocks = [measured(arrays, axes)] if arrays else []
        done = [item for item in found if not isinstance(item, np.ndarray)]
        if not done:
            return blocks[0]
        order = np.empty(len(found), np.int64)
        order[np.flatnonzero(is_array)] = np.arange(len(arrays))
        order[np.flatnonzero(~np.array(is_array))] = len(arrays) + np.arange(len(done))
        return take(concat([*blocks, *done]), order)

    def _keep(self, batch: int, block: StatsBlock) -> None:
        self._blocks[batch] = block
        self._bytes += _nbytes(block)
        while self._bytes > LIST_CACHE_BYTES and len(self._blocks) > 1:
            self._bytes -= _nbytes(self._blocks.popitem(last=False)[1])


def _column(
    tensor: TensorRows, rows: NDArray[np.int64], places: NDArray[np.int64], name: str
) -> NDArray[Any]:
    if name == "time_ns":
        return np.asarray(places[3])
    if name in FLOATS:
        return np.asarray(tensor.floats[FLOATS.index(name), rows])
    return np.asarray(tensor.counts[COUNTS.index(name), rows])


def _lists(
    tables: Sequence[tuple[TensorRows, NDArray[np.int64], NDArray[np.int64]]],
    held: dict[int, StatsBlock],
    name: str,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Lengths and values of a column of lists."""
    pieces: list[tuple[StatsBlock, int]] = [
        (held[batch], row)
        for tensor, rows, _ in tables
        for batch, row in zip(*tensor.batch[:, rows].tolist(), strict=True)
    ]
    offsets = "hist_offsets" if name.startswith("hist") else "channel_offsets"
    bounds = [(block, *getattr(block, offsets)[row : row + 2].tolist()) for block, row in pieces]
    lengths = np.array([last - first for _, first, last in bounds], np.int64)
    return lengths, _joined([getattr(block, name)[first:last] for block, first, last in bounds], np.float32)


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    joined: NDArray[Any] = np.concatenate(arrays) if arrays else np.empty(0, dtype)
    return joined


def _grown(values: NDArray[Any], n: int, fill: float) -> NDArray[Any]:
    more = np.full((*values.shape[:-1], n - values.shape[-1]), fill, values.dtype)
    grown: NDArray[Any] = np.concatenate([values, more], axis=-1)
    return grown


def _nbytes(block: StatsBlock) -> int:
    return int(block.hist_bins.nbytes + block.hist_counts.nbytes + block.channel_mean.nbytes * 2)
