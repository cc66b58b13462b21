"""Gathers the rows of one forward or step and hands them to the writer in one batch."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.stats.block import concat, empty_block, scalar_block, take
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.growing import GrowingBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.guard import Problem
    from tdbg_lab.records import StatsBlock

__all__ = ["Recorder", "RowWriter"]

_MAX_INTERNED = 256
_MAX_WAITING = 512
_MAX_PLACES = 8
_WAIT_NS = 50_000_000
_MAX_RAW_BYTES = 512 * 1024 * 1024


class RowWriter(Protocol):
    """What rows are written through: `tdbg_lab.store.RankWriter`."""

    @property
    def bytes_written(self) -> int:
        """Bytes handed to the file system so far."""

    def append(self, rows: StatsRows) -> None:
        """Write one step."""

    def append_scalars(
        self,
        steps: Sequence[int],
        time_ns: Sequence[int],
        keys: Sequence[TensorKey],
        values: Sequence[float],
        *,
        mode: Mode,
        micro: int = 0,
    ) -> None:
        """Write numbers of several steps."""

    def write_raw(
        self, step: int, tensors: Mapping[str, NDArray[Any]], *, mode: Mode, micro: int = 0
    ) -> None:
        """Write raw values in the background."""

    def close(self) -> None:
        """End and seal."""


@dataclass(slots=True)
class _Waiting:
    """Numbers of steps that hold nothing else, of one mode: written together, as a batch has a price.

    From `_WAIT_NS` on they are written as soon as their steps are a power of two: so the same few tuples
    of keys come again and again, whose encoded form is kept. Where steps take longer, nothing waits.
    """

    mode: Mode
    micro: int
    steps: list[int] = field(default_factory=list)
    time_ns: list[int] = field(default_factory=list)
    keys: list[TensorKey] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_steps: int = 0

    def add(self, step: int, keys: list[TensorKey], values: list[float], since_ns: int) -> bool:
        """Add a step; whether to write it all now, when something was written last at `since_ns`."""
        now = time.time_ns()
        self.steps += [step] * len(keys)
        self.time_ns += [now] * len(keys)
        self.keys += keys
        self.values += values
        self.n_steps += 1
        if len(self.keys) >= _MAX_WAITING:
            return True
        return self.n_steps & (self.n_steps - 1) == 0 and now - since_ns >= _WAIT_NS


class Recorder:
    """Rows and raw values of the current place (step, mode, micro-step).

    Rows leave with `flush_rows`; raw values leave when the place changes, because one place is one
    file.
    """

    __slots__ = (
        "_block_places",
        "_blocks",
        "_interned",
        "_keys",
        "_measured_keys",
        "_raw",
        "_raw_bytes",
        "_scalar_keys",
        "_scalars",
        "_waiting",
        "_written_ns",
        "dropped_raw",
        "measured",
        "micro",
        "mode",
        "step",
        "writer",
    )

    def __init__(self, writer: RowWriter) -> None:
        self.writer = writer
        self.step = 0
        self.mode = Mode.TRAIN
        self.micro = 0
        self.dropped_raw = 0
        """Raw tensors that were not kept because too much was waiting at one place."""
        self.measured = GrowingBlock()
        """Rows that are measured straight into here; who adds some says their keys with `add_measured`."""
        self._measured_keys: list[TensorKey] = []
        self._keys: list[TensorKey] = []
        self._blocks: list[StatsBlock] = []
        self._block_places: list[int] = []
        """Rows that had been measured before each block was added."""
        self._scalar_keys: list[TensorKey] = []
        self._scalars: list[float] = []
        self._waiting: dict[tuple[Mode, int], _Waiting] = {}
        self._written_ns = 0
        self._raw: dict[str, NDArray[Any]] = {}
        self._raw_bytes = 0
        self._interned: dict[tuple[int, ...], tuple[TensorKey, ...]] = {}

    def leave(self, step: int, mode: Mode, micro: int) -> bool:
        """Go to a new place if nothing was added at this one; whether that was so."""
        if self._measured_keys or self._keys or self._scalar_keys or self._raw:
            return False
        self.step, self.mode, self.micro = step, mode, micro
        return True

    def move_to(self, step: int, mode: Mode, micro: int) -> None:
        """Write what belongs to the old place and go to a new one; nothing happens at the same place."""
        if (step, mode, micro) == (self.step, self.mode, self.micro):
            return
        try:
            if self._measured_keys or self._keys or self._scalars or self._raw:
                self.flush()
        finally:
            self.step, self.mode, self.micro = step, mode, micro

    def add(self, keys: list[TensorKey], block: StatsBlock) -> None:
        """Add rows: one key per row of `block`."""
        self._keys += keys
        self._blocks.append(block)
        self._block_places.append(len(self._measured_keys))

    def add_measured(self, keys: list[TensorKey]) -> None:
        """Say the keys of the rows that were added to `measured`; without it they are forgotten."""
        self._measured_keys += keys

    def add_scalar(self, key: TensorKey, value: float) -> None:
        """Add a row with one number."""
        self._scalar_keys.append(key)
        self._scalars.append(value)

    def add_scalars(self, keys: Iterable[TensorKey], values: Iterable[float]) -> None:
        """Add rows with one number each."""
        self._scalar_keys += keys
        self._scalars += values

    def add_raw(self, name: str, values: NDArray[Any]) -> None:
        """Add raw values; the array must be our own copy."""
        while name in self._raw:  # a second value of the same name at the same place
            name += "'"
        if self._raw_bytes + values.nbytes > _MAX_RAW_BYTES:
            self.dropped_raw += 1
            return
        self._raw[name] = values
        self._raw_bytes += values.nbytes

    def add_problem(self, problem: Problem) -> None:
        """Leave a row that says what failed, so that it is known wherever the run is read."""
        key = TensorKey(f"tdbg/problem/{problem.probe}", Kind.COST)
        self.add([key], empty_block(1, f"step {problem.step}: {problem.message}"))

    def flush_rows(self) -> None:
        """Hand on the rows gathered so far: a batch, or numbers that wait for those of the next steps."""
        if self._measured_keys or self._keys:
            self.flush_waiting()
            keys, block = self._take_rows()
            now = self._written_ns = time.time_ns()
            if keys:
                rows = StatsRows(self.step, self.mode, self.micro, now, self._intern(keys), block)
                self.writer.append(rows)
        elif self._scalars:
            place = self.mode, self.micro
            waiting = self._waiting.get(place)
            if waiting is None:
                if len(self._waiting) >= _MAX_PLACES:
                    self.flush_waiting()
                waiting = self._waiting[place] = _Waiting(self.mode, self.micro)
            due = waiting.add(self.step, self._scalar_keys, self._scalars, self._written_ns)
            self._scalar_keys, self._scalars = [], []
            if due:
                self.flush_waiting()

    def flush_waiting(self) -> None:
        """Write the numbers that wait."""
        held, self._waiting = self._waiting, {}
        for waiting in held.values():
            self._written_ns = time.time_ns()
            self.writer.append_scalars(
                waiting.steps,
                waiting.time_ns,
                self._intern(waiting.keys),
                waiting.values,
                mode=waiting.mode,
                micro=waiting.micro,
            )

    def flush(self) -> None:
        """Write rows and raw values of this place."""
        try:
            self.flush_rows()
        finally:
            raw, self._raw, self._raw_bytes = self._raw, {}, 0
            if raw:
                self.writer.write_raw(self.step, raw, mode=self.mode, micro=self.micro)

    def close(self) -> None:
        """Write everything."""
        try:
            self.flush()
        finally:
            self.flush_waiting()

    def _take_rows(self) -> tuple[list[TensorKey], StatsBlock]:
        """Take the rows gathered so far: tensors in the order in which they were read.

        Some of a step are blocks where the kernels are still being compiled, or for tensors of other devices.
        """
        measured, keys, scalars, blocks = self.measured, self._measured_keys, self._scalars, self._blocks
        places, all_keys = self._block_places, keys + self._scalar_keys + self._keys
        self._measured_keys, self._scalar_keys, self._keys = [], [], []
        self._scalars, self._blocks, self._block_places = [], [], []
        n_scalars, n_measured = len(scalars), len(measured)
        try:
            if n_measured != len(keys):  # a measurement has broken off; no row under a wrong name
                measured.clear()
                all_keys, n_measured = all_keys[len(keys) :], 0
            if scalars and n_measured and engine().ready:
                engine().add_numbers(measured, scalars)
                scalars = []
            parts = [measured.block()] if n_measured else []
        finally:
            measured.clear()
        if scalars:
            parts.append(scalar_block(scalars))
        rows = concat([*parts, *blocks])
        if not blocks or min(places) >= n_measured:
            return all_keys, rows
        order = _reading_order(n_measured, n_scalars, places, [len(block) for block in blocks])
        return [all_keys[row] for row in order], take(rows, order)

    def _intern(self, keys: list[TensorKey]) -> tuple[TensorKey, ...]:
        """The same tuple object for the same keys: the writer caches its encoded form."""
        identity = tuple(map(id, keys))
        known = self._interned.get(identity)
        if known is None:
            if len(self._interned) >= _MAX_INTERNED:
                self._interned.clear()
            known = self._interned[identity] = tuple(keys)  # keeps the ids alive
        return known


def _reading_order(measured: int, numbers: int, places: list[int], lengths: list[int]) -> NDArray[np.intp]:
    """Places of rows that stand as measured ones, numbers, blocks: each block where it came, numbers last."""
    came = np.concatenate(
        [
            np.arange(measured),
            np.full(numbers, np.inf),
            np.repeat(np.minimum(places, measured) - 0.5, lengths),  # before the row that came after it
        ]
    )
    return np.argsort(came, kind="stable")
