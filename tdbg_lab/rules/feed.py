"""From what is written of a run to steps that can be checked."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Mode, StatsBlock, TensorKey
from tdbg_lab.rules.activity_feed import ActivityFeed
from tdbg_lab.rules.order import known_keys
from tdbg_lab.rules.raw_values import RawValues
from tdbg_lab.rules.view import RunView
from tdbg_lab.stats import take
from tdbg_lab.store.source import source_of
from tdbg_lab.store.tail import tail, tailed_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from tdbg_lab.rules.base import Needs

__all__ = ["Feed"]

log = logging.getLogger(__name__)

_COUNTS = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
_INFO_S = 1.0
_HOLD_S = 0.3
_KNOWN_COLUMNS = 16
_FLOATS = ("min", "max", "mean", "std", "l1", "l2")


class Feed:
    """Follows a run and puts it into a `RunView`, step by step.

    A step can be checked once a later one was begun, or when nothing more came for a moment. What
    comes later still (another rank, a late micro-step) makes the step come again.

    Parameters
    ----------
    run_path
        Run directory.
    view
        Where it goes.
    settle_s
        Silence after which the newest step counts as complete, s.
    hold_s
        Time a step waits for what is written in the background, s.
    activity
        Follow what training and its machines did, too.
    clock
        Monotonic clock, s.
    """

    def __init__(
        self,
        run_path: Path,
        view: RunView,
        *,
        settle_s: float = 0.15,
        hold_s: float = 0.0,
        activity: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._settle_s = settle_s
        self._hold_s = hold_s
        self._clock = clock
        self._run_path = run_path
        self._ranks: dict[int, _Rank] = {}
        self._decoder = _Decoder()
        self._pending: dict[int, list[_Part]] = {}
        self._read_s: dict[int, float] = {}
        """When the last part of each pending step was read."""
        self._last_write_s = clock()
        self._refused = False
        self._source = source_of(run_path)
        self._info_s = -math.inf
        self._look_at_info()
        self._activity = ActivityFeed(run_path) if activity else None
        view.activity = None if self._activity is None else self._activity.activity

    @classmethod
    def of(cls, run_path: Path, needs: Iterable[Needs]) -> Feed:
        """Follow a run for rules that need all this."""
        wanted = list(needs)
        view = RunView(
            max([1, *(one.steps for one in wanted)]),
            per_rank=any(one.per_rank for one in wanted),
            raw=RawValues(run_path) if any(one.raw for one in wanted) else None,
        )
        view.expect(known_keys(run_path))
        hold_s = _HOLD_S if any(one.raw for one in wanted) else 0.0
        return cls(run_path, view, hold_s=hold_s, activity=any(one.activity for one in wanted))

    @property
    def view(self) -> RunView:
        """Where what is read goes."""
        return self._view

    @property
    def quiet_s(self) -> float:
        """Time since something new was read, or since the feed was made, s."""
        return self._clock() - self._last_write_s

    @property
    def waiting(self) -> bool:
        """Whether a step waits for the moment of silence."""
        return bool(self._pending)

    def steps(self, *, last: bool = False) -> Iterator[int]:
        """Read what is new; give each step as soon as the view ends with it.

        Parameters
        ----------
        last
            Nothing more will come: give the newest step, too.
        """
        self._look_at_info()
        while (part := self._next()) is not None:
            self._last_write_s = self._read_s[part.step] = self._clock()
            for step in sorted(step for step in self._pending if step != part.step):
                if last or not self._is_held(step):
                    yield self._give(step)
            self._pending.setdefault(part.step, []).append(part)
        quiet = self._clock() - self._last_write_s >= self._settle_s
        newest = max(self._read_s, key=self._read_s.__getitem__, default=-1)
        due = [s for s in sorted(self._pending) if last or (not self._is_held(s) and (quiet or s != newest))]
        for step in due:
            yield self._give(step, final=last and step == due[-1])
        if last and not due and self._finish_activity():
            yield self._view.step  # once more, with what training did after it was given

    def _is_held(self, step: int) -> bool:
        """Whether raw values of a step may still be on their way: they are written in the background."""
        return self._clock() - self._read_s[step] < self._hold_s

    def _look_at_info(self) -> None:
        """Read what the run says about itself, at most once a second; broken words leave the old ones."""
        if self._clock() - self._info_s < _INFO_S:
            return
        self._info_s = self._clock()
        with contextlib.suppress(OSError, ValueError):
            self._view.info = self._source.info()

    def _next(self) -> _Part | None:
        """What comes next, of the rank that is furthest behind: ranks stay side by side."""
        for number in tailed_ranks(self._run_path) if not any(r.ahead for r in self._ranks.values()) else ():
            self._ranks.setdefault(number, _Rank(self._run_path, number, self._decode))
        for rank in self._ranks.values():
            rank.look()
        ahead = [rank.ahead for rank in self._ranks.values() if rank.ahead]
        return min(ahead, key=lambda parts: parts[0].step).popleft() if ahead else None

    def _finish_activity(self) -> bool:
        """Read what is left of phases and load; True when a step is to be checked again for it."""
        if self._activity is None or not self._activity.finish():
            return False
        if self._activity.is_foreign and self._view.step < 0:  # a profile without a single tensor
            steps = self._view.phase_times().step
            self._view.step = int(steps[-1]) if len(steps) else 0
        return self._view.step >= 0

    def _give(self, step: int, *, final: bool = False) -> int:
        self._read_s.pop(step, None)
        modes: dict[Mode, list[_Part]] = {}
        for part in self._pending.pop(step):
            modes.setdefault(part.mode, []).append(part)
        for mode, parts in modes.items():
            newest = max(part.time_ns for part in parts)
            ranks = [part.rank for part in parts]
            self._view.put(mode, step, newest, [(part.keys, part.block) for part in parts], ranks)
        self._view.step = step
        if final:
            self._finish_activity()
        elif self._activity is not None:
            self._activity.move_to(newest)
        return step

    def _decode(self, table: pa.Table, rank: int) -> list[_Part]:
        try:
            return self._decoder.parts(table, rank)
        except (ValueError, KeyError, TypeError) as error:  # a run directory is untrusted
            if not self._refused:
                log.warning("A batch of statistics is left out: %s", error)
            self._refused = True
            return []


class _Rank:
    """What one rank writes."""

    def __init__(self, run_path: Path, number: int, decode: Callable[[pa.Table, int], list[_Part]]) -> None:
        self._tail = tail(run_path, rank=number)
        self._number = number
        self._decode = decode
        self.ahead: deque[_Part] = deque()
        """The next batch, read but not used."""

    def look(self) -> None:
        """Have the next batch at hand, if there is one."""
        while not self.ahead:
            chunk = next(self._tail)
            if chunk is None:
                return
            self.ahead.extend(self._decode(chunk.table, chunk.rank))


class _Part(NamedTuple):
    """What one rank wrote at once of one step."""

    step: int
    mode: Mode
    time_ns: int
    keys: tuple[TensorKey, ...]
    block: StatsBlock
    rank: int


class _Decoder:
    """Makes parts of batches; tensors that come again and again are recognised as a whole."""

    def __init__(self) -> None:
        self._keys: dict[str, TensorKey] = {}
        self._columns: deque[tuple[pa.Array, tuple[TensorKey, ...]]] = deque(maxlen=_KNOWN_COLUMNS)

    def parts(self, table: pa.Table, rank: int) -> list[_Part]:
        """One batch: a step, or numbers of several steps of one mode that were written together.

        Raises
        ------
        ValueError, KeyError, TypeError
            If it is not what a writer of ours writes.
        """
        if table.num_rows == 0:
            return []
        batch = table.combine_chunks().to_batches()[0]
        mode = Mode(batch["mode"][0].as_py())
        steps = _numbers(batch, "step", np.int64)
        times = _numbers(batch, "time_ns", np.int64)
        keys, block = self._tensors(batch), _block(batch)
        if (steps == steps[0]).all():
            return [_Part(int(steps[0]), mode, int(times[-1]), keys, block, rank)]
        parts = []
        for step in np.unique(steps):
            rows = np.flatnonzero(steps == step)
            own = tuple(keys[row] for row in rows)
            parts.append(_Part(int(step), mode, int(times[rows[-1]]), own, take(block, rows), rank))
        return parts

    def _tensors(self, batch: pa.RecordBatch) -> tuple[TensorKey, ...]:
        column = batch["tensor"]
        for known, keys in self._columns:
            if column.equals(known):
                return keys
        names = column.to_pylist()
        for row, name in enumerate(names):
            if name not in self._keys:
                self._keys[name] = _key(batch, row, name)
        found = tuple(self._keys[name] for name in names)
        self._columns.appendleft((column, found))
        return found


def _key(batch: pa.RecordBatch, row: int, name: Any) -> TensorKey:
    facts = {field: batch[field][row].as_py() for field in ("kind", "module", "dtype")}
    return TensorKey(
        name=str(name),
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
