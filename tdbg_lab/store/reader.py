"""The reading engine behind `tdbg_lab.run.Run` and its tensors."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.records import Kind, Mode
from tdbg_lab.store.events import TIME
from tdbg_lab.store.histogram_columns import HistogramColumns
from tdbg_lab.store.parts import Part, Query
from tdbg_lab.store.raw_index import RawIndex
from tdbg_lab.store.results import Overview
from tdbg_lab.store.schema import MODES, SCHEMAS, mode_code
from tdbg_lab.store.series import SampleSeries, split_series
from tdbg_lab.store.state import RunState
from tdbg_lab.store.table import derive, needed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from tdbg_lab.records import TensorKey
    from tdbg_lab.store.parts import Names

_FOREVER = 2**63 - 1
_PLACED_ROWS = 2**18
"""Rows of an overview read at once: what was decoded for them stays until they are in their places."""
Steps = tuple["int | None", "int | None"]
"""First and last step, both inclusive; None leaves an end open."""


class State(Protocol):
    """Rows, spans and samples of a run at its last refresh: `RunState`, or that of a foreign store."""

    names: Names
    ranks: list[int]
    last_write_ns: int

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why."""

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""

    def steps(self, rank: int | None = None) -> NDArray[np.int64]:
        """Mode code, step and time_ns of all that was written, shape ``(S, 3)``."""

    def read(self, query: Query, rank: int | None = None) -> Part:
        """Rows by tensor and step, one row for each."""

    def parts(self, query: Query, rank: int | None = None) -> list[Part]:
        """Rows; those of one tensor and step may come several times."""

    def events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples with their rank."""


class Raw(Protocol):
    """Raw values of a run: `RawIndex`, or that of a foreign store."""

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""

    def names(self) -> set[str]:
        """Tensors with a value at some step."""

    def files(self, name: str, mode: Mode | str | None, rank: int | None) -> Sequence[Any]:
        """Where the values of a tensor are; each has a ``step``."""

    def read(self, file: Any, name: str) -> NDArray[Any]:
        """One of them; raises OSError, ValueError or KeyError when it cannot be read."""

    def column(self, files: Sequence[Any], name: str) -> list[NDArray[Any] | None]:
        """All of them in their order; None for those that cannot be read."""


class Reader:
    """Rows, spans, samples and raw values of one run. Thread-safe.

    Parameters
    ----------
    path
        Run directory.
    make
        Makes what reads it, where it is not a run directory of ours.
    """

    def __init__(self, path: Path, make: Callable[[], tuple[State, Raw]] | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._make = make if make is not None else self._open
        self.state: State
        self.raw: Raw
        self.state, self.raw = self._make()
        self.columns = HistogramColumns()

    def _open(self) -> tuple[State, Raw]:
        return RunState(self.path), RawIndex(self.path)

    def reset(self) -> None:
        """Forget everything: another run took the place of this one."""
        with self.lock:
            self.state, self.raw = self._make()
            self.columns = HistogramColumns()

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""
        with self.lock:
            changed = self.state.refresh()
            return self.raw.refresh() or changed

    def keys(
        self,
        *,
        kind: Kind | str | Sequence[Kind | str] | None = None,
        regex: str | None = None,
        collection: str | None = None,
        module: str | None = None,
        mode: Mode | str | None = None,
    ) -> list[TensorKey]:
        """Tensors, see `tdbg_lab.run.Run.tensors`."""
        pattern, kinds = _pattern(regex), _kinds(kind)
        mask = -1 if mode is None else 1 << mode_code(mode)
        with self.lock:
            names = self.state.names
            return [
                key
                for key, modes in zip(names.keys, names.modes, strict=True)
                if modes & mask
                and (key.kind is not Kind.CHECK if kinds is None else key.kind in kinds)
                and (pattern is None or pattern.search(key.name))
                and (collection is None or collection in key.collections)
                and (module is None or key.module == module or key.module.startswith(f"{module}."))
            ]

    def names_at(self, step: int, mode: Mode | str | None) -> set[str]:
        """Tensors with a row at `step`."""
        codes = range(len(MODES)) if mode is None else [mode_code(mode)]
        with self.lock:
            parts = [self.state.read(Query(code, None, (), step, step)) for code in codes]
            return {self.state.names.keys[i].name for part in parts for i in part.tensor}

    def code(self, mode: Mode | str | None, tensor: str | None = None) -> int:
        """Mode code; None means train if there is train data (of `tensor`), else the first there is."""
        if mode is not None:
            return mode_code(mode)
        with self.lock:
            found = None if tensor is None else self.state.names.ids.get(tensor)
            if found is not None:
                mask = self.state.names.modes[found]
                return next((code for code in range(len(MODES)) if mask >> code & 1), 0)
            codes = np.unique(self.state.steps()[:, 0])
        return int(codes[0]) if len(codes) else 0

    def part(
        self,
        names: Sequence[str],
        code: int,
        columns: Sequence[str],
        *,
        steps: Steps | None = None,
        rank: int | None = None,
    ) -> Part:
        """Merged rows of some tensors with stored `columns`.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        with self.lock:
            return self.state.read(self._query(names, code, columns, steps), rank)

    def frame(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        code: int,
        *,
        steps: Steps | None = None,
        rank: int | None = None,
    ) -> pd.DataFrame:
        """``tensor``, ``mode``, ``step`` and `columns`, see `tdbg_lab.run.Run.stats`."""
        import pandas as pd

        part = self.part(names, code, needed(columns), steps=steps, rank=rank)
        keys = self.state.names.keys
        used, codes = np.unique(part.tensor, return_inverse=True)
        texts = np.array([*(keys[i].name for i in used), ""], dtype=object)
        data: dict[str, Any] = {"tensor": texts[codes], "mode": str(MODES[code]), "step": part.step}
        data.update({column: derive(part, column) for column in columns})
        return pd.DataFrame(data, index=pd.RangeIndex(len(part.step)))

    def overview(
        self, names: Sequence[str], code: int, columns: Sequence[str], n_out: int | None
    ) -> Overview:
        """Columns of many tensors over steps, see `tdbg_lab.run.Run.overview`."""
        with self.lock:
            query = self._query(names, code, needed(columns), None)
            steps = _steps_of(self.state.parts(replace(query, columns=())))
            width = max(len(steps), 1)
            row_of = np.zeros(len(self.state.names.keys), np.int64)
            row_of[list(query.tensors or ())] = np.arange(len(names)) * width
            values = np.full((len(columns), len(names) * width), np.nan)
            present = np.zeros(len(names) * width, bool)
            for some in _pieces(steps, max(_PLACED_ROWS // max(len(names), 1), 1)):
                for place, part in self._placed(_between(query, some), row_of, steps):
                    present[place] = True
                    for row, column in zip(values, columns, strict=True):
                        row[place] = derive(part, column)
        values = values.reshape(len(columns), len(names), width)[:, :, : len(steps)]
        if n_out is not None and len(steps) > max(n_out, 2):
            lost = present.reshape(len(names), width)[:, : len(steps)] & ~np.isfinite(values[0])
            chosen = thin(lost.sum(axis=0), max(n_out, 2))
            steps, values = steps[chosen], values[:, :, chosen]
        return Overview(tuple(names), steps, values[0], dict(zip(columns[1:], values[1:], strict=True)))

    def _placed(
        self, query: Query, row_of: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Part]]:
        """Rows that each have a place of their own in a table of tensors and steps, behind these places."""
        parts = self.state.parts(query)
        places = _places(parts, row_of, steps)
        if _repeat(places):
            parts = [self.state.read(query)]
            places = _places(parts, row_of, steps)
        return zip(places, parts, strict=True)

    def events(self, stream: str, start_ns: int | None, end_ns: int | None) -> pd.DataFrame:
        """Spans or samples that begin between, by time, with their ``rank``."""
        import pyarrow as pa

        first = -_FOREVER if start_ns is None else int(start_ns)
        last = _FOREVER if end_ns is None else int(end_ns)
        with self.lock:
            found = self.state.events(stream, first, last)
        tables = [table.append_column("rank", pa.repeat(rank, table.num_rows)) for rank, table in found]
        nothing = SCHEMAS[stream].append(pa.field("rank", pa.int64())).empty_table()
        tables = [table.cast(nothing.schema) for table in tables]
        frame: pd.DataFrame = pa.concat_tables([nothing, *tables]).drop_columns(["seq"]).to_pandas()
        return frame.sort_values(TIME[stream], kind="stable", ignore_index=True)

    def clock_offsets(self) -> dict[str, float]:
        """What the clocks of machines are ahead of that of the first rank's, s, where they differ."""
        with self.lock:
            found = self.state.clock_offsets() if isinstance(self.state, RunState) else {}
        return {host: ahead_ns / 1e9 for host, ahead_ns in found.items()}

    def last_sample_ns(self) -> int | None:
        """When the latest sample was taken; None without any."""
        with self.lock:
            if isinstance(self.state, RunState):
                return self.state.last_ns("system")
        frame = self.events("system", None, None)
        return int(frame["time_ns"].iloc[-1]) if len(frame) else None

    def samples(
        self, metrics: Collection[str], start_ns: int | None, end_ns: int | None
    ) -> list[SampleSeries]:
        """Samples of some metrics between two moments, both inclusive, by rank, metric and device."""
        first = -_FOREVER if start_ns is None else int(start_ns)
        last = _FOREVER if end_ns is None else int(end_ns)
        with self.lock:
            if isinstance(self.state, RunState):
                return self.state.samples(metrics, first, last)
            tables = self.state.events("system", first, last)
        return [
            SampleSeries(*key, *columns)
            for rank, table in tables
            for key, columns in split_series(rank, table, metrics).items()
        ]

    def _query(self, names: Sequence[str], code: int, columns: Sequence[str], steps: Steps | None) -> Query:
        ids = self.state.names.ids
        for name in names:
            if name not in ids:
                hint = did_you_mean(name, self.state.names.meant_by(name), most=3)
                raise NotFoundError(f"There is no tensor {name[:200]!r} in this run.{hint}")
        first, last = steps if steps is not None else (None, None)
        return Query(
            code,
            tuple(ids[name] for name in names),
            tuple(columns),
            -_FOREVER if first is None else int(first),
            _FOREVER if last is None else int(last),
        )


def thin(alarms: NDArray[np.int64], n_out: int) -> NDArray[np.int64]:
    """At most `n_out` of the positions of `alarms`, evenly spread, ascending.

    The first and the last are kept. Where a position with alarms (values that are not finite) would be
    passed over, it takes the place of its neighbour; the one with the most when there are several.
    """
    last = len(alarms) - 1
    chosen = np.linspace(0, last, n_out).round().astype(np.int64)
    loud = np.flatnonzero(alarms)
    loud = loud[(loud > 0) & (loud < last)]
    if n_out > 2 and len(loud):
        middles = (chosen[1:] + chosen[:-1]) / 2
        bucket = np.clip(np.searchsorted(middles, loud), 1, n_out - 2)
        by_volume = np.argsort(alarms[loud], kind="stable")
        chosen[bucket[by_volume]] = loud[by_volume]  # of equal places the last assignment stays
    return np.unique(chosen)


def _steps_of(parts: Sequence[Part]) -> NDArray[np.int64]:
    """All steps, ascending. The rows of a tensor ascend, so most repetitions are found cheaply."""
    found = [np.empty(0, np.int64)]
    for part in parts:
        step = part.step
        n = int(np.argmax(part.tensor != part.tensor[0])) or len(step)
        first = step[:n]
        regular = len(step) % n == 0 and (step.reshape(-1, n) == first).all()
        found.append(first if regular else np.unique(step))
    return np.unique(np.concatenate(found))


def _pieces(steps: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """`steps` in pieces of `size`; none of nothing."""
    return np.split(steps, np.arange(size, len(steps), size)) if len(steps) else []


def _between(query: Query, steps: NDArray[np.int64]) -> Query:
    """`query` from the first to the last of these steps."""
    return replace(query, first=int(steps[0]), last=int(steps[-1]))


def _places(
    parts: Sequence[Part], row_of: NDArray[np.int64], steps: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    return [row_of[part.tensor] + np.searchsorted(steps, part.step) for part in parts]


def _repeat(places: Sequence[NDArray[np.int64]]) -> bool:
    """Whether a place comes several times."""
    low = min((int(place.min()) for place in places if len(place)), default=0)
    high = max((int(place.max()) for place in places if len(place)), default=-1)
    taken = np.zeros(high - low + 1, bool)
    for place in places:
        taken[place - low] = True
    return int(taken.sum()) < sum(len(place) for place in places)


def _pattern(regex: str | None) -> re.Pattern[str] | None:
    if regex is None:
        return None
    try:
        return re.compile(regex)
    except re.error as error:
        raise ConfigError(f"{regex[:80]!r} is not a regular expression: {error}.") from error


def _kinds(kind: Kind | str | Sequence[Kind | str] | None) -> frozenset[Kind] | None:
    if kind is None:
        return None
    try:
        return frozenset([Kind(kind)] if isinstance(kind, str) else [Kind(k) for k in kind])
    except ValueError as error:
        raise ConfigError(f"There is no such kind of tensor; choose from {', '.join(Kind)}.") from error
