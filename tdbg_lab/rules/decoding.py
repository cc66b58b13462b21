"""From tables of statistics to what a rank wrote of a step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tdbg_lab.records import Kind, Mode, StatsBlock, TensorKey
from tdbg_lab.stats import take

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.store.tail import Chunk

__all__ = ["Decoder", "Part"]

_COUNTS = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
_FLOATS = ("min", "max", "mean", "std", "l1", "l2")
_KNOWN_COLUMNS = 16
_MAX_JOINS = 256


@dataclass(frozen=True, slots=True)
class Part:
    """What one rank wrote at once of one step."""

    step: int
    mode: Mode
    time_ns: int
    keys: tuple[TensorKey, ...]
    """The same object for the same tensors."""
    source: StatsBlock
    """What was read together with it; the same object for all parts of a table."""
    rows: NDArray[np.int64]
    """Where its tensors stand there."""
    rank: int

    @property
    def block(self) -> StatsBlock:
        """Its statistics, a row per key."""
        rows, source = self.rows, self.source
        whole = len(rows) == len(source) and (rows[1:] > rows[:-1]).all()
        return source if whole else take(source, rows)


class Decoder:
    """Makes parts of chunks; tables and tensors that come again and again are recognised as a whole."""

    def __init__(self) -> None:
        self._keys: dict[str, TensorKey] = {}
        self._columns: deque[tuple[pa.Array, tuple[TensorKey, ...]]] = deque(maxlen=_KNOWN_COLUMNS)
        self._tables: dict[int, tuple[pa.Table, _Table | None]] = {}
        """What each rank is at, None for a broken one: a sealed segment is one table of many chunks."""
        self._joins: dict[tuple[int, ...], _Join] = {}

    def parts(self, chunk: Chunk) -> list[Part]:
        """Of one batch: a step, or numbers of several steps of one mode that were written together.

        Raises
        ------
        ValueError, KeyError, TypeError
            If it is not what a writer of ours writes.
        """
        if not len(chunk.rows):
            return []
        table, rows = self._table_of(chunk), chunk.rows
        mode = Mode(table.batch["mode"][int(rows[0])].as_py())
        steps = table.step[rows]
        keys = self._tensors(table, rows)
        if (steps == steps[0]).all():
            time_ns = int(table.time_ns[rows[-1]])
            return [Part(int(steps[0]), mode, time_ns, keys, table.block, rows, chunk.rank)]
        parts = []
        for step in np.unique(steps):
            own = np.flatnonzero(steps == step)
            time_ns = int(table.time_ns[rows[own[-1]]])
            told = tuple(keys[row] for row in own)
            parts.append(Part(int(step), mode, time_ns, told, table.block, rows[own], chunk.rank))
        return parts

    def _table_of(self, chunk: Chunk) -> _Table:
        source, table = self._tables.get(chunk.rank, (None, None))
        if source is not chunk.source:
            self._tables[chunk.rank] = (chunk.source, None)
            table = _Table(chunk.source)
            self._tables[chunk.rank] = (chunk.source, table)
        if table is None:
            raise ValueError("it belongs to a table that is broken")
        return table

    def join(self, parts: Sequence[Part], places: Mapping[str, int]) -> list[Part]:
        """Make one part of neighbours of a step that stand in one table, in the order of `places`, by name.

        So the rows of a step are moved once, from where a sealed segment has them to where rules want them.
        """
        together = groupby(parts, key=lambda part: id(part.source))
        return [self._joined(list(some), places) for _, some in together]

    def _joined(self, parts: Sequence[Part], places: Mapping[str, int]) -> Part:
        which = tuple(id(part.keys) for part in parts)
        join = self._joins.get(which)
        if join is None:
            if len(self._joins) >= _MAX_JOINS:
                self._joins.clear()
            join = self._joins[which] = _Join([part.keys for part in parts], places)
        return join.apply(parts)

    def _tensors(self, table: _Table, rows: NDArray[np.int64]) -> tuple[TensorKey, ...]:
        if len(rows) == len(table.block):
            return self._recognised(table, rows)
        which = table.name_codes[rows].tobytes()
        if which not in table.keys:
            table.keys[which] = self._recognised(table, rows)
        return table.keys[which]

    def _recognised(self, table: _Table, rows: NDArray[np.int64]) -> tuple[TensorKey, ...]:
        column = table.names(rows)
        for known, keys in self._columns:
            if column.equals(known):
                return keys
        names = column.to_pylist()
        for row, name in zip(rows.tolist(), names, strict=True):
            if name not in self._keys:
                self._keys[name] = table.key(row)
        found = tuple(self._keys[name] for name in names)
        self._columns.appendleft((column, found))
        return found


class _Join:
    """How some parts of a step become one."""

    def __init__(self, parts: Sequence[tuple[TensorKey, ...]], places: Mapping[str, int]) -> None:
        self._parts = parts  # kept, so that no others get their ids
        keys = [key for part in parts for key in part]
        wanted = np.array([places.get(key.name, len(places)) for key in keys], np.int64)
        self._order = None if (wanted[1:] >= wanted[:-1]).all() else np.argsort(wanted, kind="stable")
        ordered = keys if self._order is None else [keys[place] for place in self._order]
        self._keys = parts[0] if self._order is None and len(parts) == 1 else tuple(ordered)

    def apply(self, parts: Sequence[Part]) -> Part:
        """Join parts with the same keys as the first ones had."""
        if self._keys is parts[0].keys:
            return parts[0]
        last = max(parts, key=lambda part: part.time_ns)
        rows = np.concatenate([part.rows for part in parts])
        rows = rows if self._order is None else rows[self._order]
        return Part(last.step, last.mode, last.time_ns, self._keys, last.source, rows, last.rank)


class _Table:
    """A table whose columns are at hand as arrays, without a copy where that can be.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is not what a writer of ours writes.
    """

    def __init__(self, arrow: pa.Table) -> None:
        self.batch: pa.RecordBatch = arrow.combine_chunks().to_batches()[0]
        self.step = _numbers(self.batch, "step", np.int64)
        self.time_ns = _numbers(self.batch, "time_ns", np.int64)
        self.block = _block(self.batch)
        self.keys: dict[bytes, tuple[TensorKey, ...]] = {}
        """Tensors of its batches, by the codes of their names."""

    @cached_property
    def name_codes(self) -> NDArray[np.int32]:
        """A number for the name of each row, shape ``(N,)``: quicker to compare than names are."""
        codes: NDArray[np.int32] = self.batch["tensor"].dictionary_encode().indices.to_numpy()
        return codes

    def names(self, rows: NDArray[np.int64]) -> pa.Array:
        """Names of the tensors of some rows."""
        column = self.batch["tensor"]
        return column if len(rows) == len(column) else column.take(pa.array(rows))

    def key(self, row: int) -> TensorKey:
        """The tensor of a row."""
        batch = self.batch
        facts = {field: batch[field][row].as_py() for field in ("tensor", "kind", "module", "dtype")}
        return TensorKey(
            name=str(facts["tensor"]),
            kind=Kind(facts["kind"]),
            module=facts["module"] or "",
            dtype=facts["dtype"] or "",
            shape=tuple(batch["shape"][row].as_py() or ()),
            collections=tuple(batch["collections"][row].as_py() or ()),
        )


def _block(batch: pa.RecordBatch) -> StatsBlock:
    columns: dict[str, Any] = {name: _numbers(batch, name, np.int64) for name in _COUNTS}
    columns |= {name: _numbers(batch, name, np.float64) for name in _FLOATS}
    for offsets, first, second, types in (
        ("hist_offsets", "hist_bins", "hist_counts", (np.uint16, np.int64)),
        ("channel_offsets", "channel_zero_frac", "channel_mean", (np.float32, np.float32)),
    ):
        columns[offsets], columns[first] = _lists(batch, first, types[0])
        others, columns[second] = _lists(batch, second, types[1])
        if not np.array_equal(columns[offsets], others):
            raise ValueError(f"{first} and {second} do not belong together")
    reason = batch["reason"]
    none = reason.null_count == len(reason)
    return StatsBlock(**columns, reasons=() if none else tuple(reason.to_pylist()))


def _numbers(batch: pa.RecordBatch, name: str, dtype: type) -> NDArray[Any]:
    return np.asarray(batch[name].to_numpy(zero_copy_only=False), dtype)


def _lists(batch: pa.RecordBatch, name: str, dtype: type) -> tuple[NDArray[np.int64], NDArray[Any]]:
    lists = batch[name]
    if not lists.null_count:  # the usual case, without a copy
        ends = np.asarray(lists.offsets.to_numpy(zero_copy_only=False), np.int64)
        own = lists.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
        return ends - ends[0], np.asarray(own.to_numpy(zero_copy_only=False), dtype)
    values: NDArray[Any] = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype)
    lengths = np.nan_to_num(np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), np.float64))
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(lengths.astype(np.int64), out=offsets[1:])
    return offsets, values
