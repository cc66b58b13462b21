"""Reading a run: names, steps, values, statistics, samples, spans, findings - while it grows.

Reads work on the state of the last `Run.refresh`. Rows of the same tensor, mode and step merge over
ranks and micro-steps. A run with nothing in it answers empty; nothing on disk makes a read raise:
what cannot be read is left out, and `Run.problems` says why.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import ConfigError, NotFoundError, StepNotFoundError
from tdbg_lab.records import Kind, Mode
from tdbg_lab.store import control
from tdbg_lab.store.findings import findings_stamp, read_findings, read_rule_states
from tdbg_lab.store.info import RunInfo, read_info, write_edits
from tdbg_lab.store.layout import rank_path
from tdbg_lab.store.listing import RunSummary, find_runs, infer_status
from tdbg_lab.store.parts import Part, Query
from tdbg_lab.store.raw import LABELS, RawFile, list_raw, raw_header, read_raw
from tdbg_lab.store.schema import MODE_CODE, MODES
from tdbg_lab.store.state import RunState
from tdbg_lab.store.table import block_of, derive, needed, scalar_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, RuleState, RunStatus, StatsBlock, TensorKey

__all__ = [
    "HistogramSeries",
    "Overview",
    "Run",
    "RunInfo",
    "RunSummary",
    "Series",
    "Tensor",
    "list_runs",
    "open_run",
]

_BLOCK = (
    "count",
    "nan_count",
    "pos_inf_count",
    "neg_inf_count",
    "zero_count",
    "min",
    "max",
    "mean",
    "std",
    "l1",
    "l2",
    "hist_bins",
    "hist_counts",
    "channel_zero_frac",
    "channel_mean",
)
_FOREVER = 2**63 - 1
_DEFAULT_COLUMNS = ("count", "nan_count", "inf_count", "zero_frac", "min", "max", "mean", "std", "l1", "l2")


@dataclass(frozen=True, slots=True)
class Series:
    """A scalar over steps."""

    steps: NDArray[np.int64]
    """Shape ``(S,)``, ascending."""
    values: NDArray[np.float64]
    """Shape ``(S,)``; NaN and infinities as they were."""
    time_ns: NDArray[np.int64]
    """When each was written, shape ``(S,)``."""

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class Overview:
    """One statistic of many tensors over steps."""

    names: tuple[str, ...]
    """``N`` tensors in the order of their first appearance."""
    steps: NDArray[np.int64]
    """Shape ``(S,)``, ascending."""
    values: NDArray[np.float64]
    """Shape ``(N, S)``; NaN where a tensor has no row, or no value."""


@dataclass(frozen=True, slots=True)
class HistogramSeries:
    """Histograms of a tensor over steps."""

    steps: NDArray[np.int64]
    """First step of each group, shape ``(S,)``."""
    block: StatsBlock
    """``S`` rows."""


def open_run(path: str | Path) -> Run:
    """The run in a directory, read once.

    Raises
    ------
    NotFoundError
        If there is none.
    """
    return Run(path)


def list_runs(root: str | Path, *, limit: int | None = None) -> list[RunSummary]:
    """Runs below `root`, the newest first. Quick: reads each ``run.json`` and little else."""
    return find_runs(Path(root), limit)


class Run:
    """One run directory. Thread-safe.

    Raises
    ------
    NotFoundError
        If there is no run at `path`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.version = 0
        """Grows with each change."""
        self._lock = threading.RLock()
        try:
            self._info = read_info(self.path)
        except OSError as error:
            raise NotFoundError(f"There is no run at {self.path.name}: run.json is missing.") from error
        except ValueError as error:
            raise NotFoundError(
                f"{self.path.name} is not a run of this version of tdbg-lab: {error}."
            ) from error
        self._state = RunState(self.path)
        self._findings: tuple[Any, list[Finding], list[RuleState]] = (None, [], [])
        self._raw: dict[int, list[RawFile]] = {}
        self._raw_names: dict[Path, frozenset[str]] = {}
        self.refresh()

    def __repr__(self) -> str:
        tensors = len(self._state.names.keys)
        return f"<Run {self.info.name}: {self.status}, {tensors} tensors, step {self.last_step}>"

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""
        with self._lock:
            changed = self._refresh_info()
            changed = self._state.refresh() or changed
            changed = self._refresh_findings() or changed
            changed = self._refresh_raw() or changed
            self.version += changed
            return changed

    @property
    def info(self) -> RunInfo:
        """What the run says about itself, edits applied."""
        return self._info

    @property
    def status(self) -> RunStatus:
        """Where it stands; ``crashed`` when it says running but its process is gone."""
        return infer_status(self._info, self._state.last_write_ns)

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why."""
        return list(self._state.problems)

    @property
    def last_step(self) -> int:
        """Last step of any mode; -1 when there is none."""
        with self._lock:
            return int(self._state.steps()[:, 1].max(initial=-1))

    @property
    def first_time_ns(self) -> int | None:
        """When the first row was written; None when there is none."""
        with self._lock:
            table = self._state.steps()
            return int(table[:, 2].min()) if len(table) else None

    @property
    def last_time_ns(self) -> int | None:
        """When the last row was written; None when there is none."""
        with self._lock:
            table = self._state.steps()
            return int(table[:, 2].max()) if len(table) else None

    def ranks(self) -> list[int]:
        """Ranks that wrote something, ascending."""
        return list(self._state.ranks)

    def modes(self) -> list[Mode]:
        """Modes with rows, train first."""
        with self._lock:
            return [MODES[code] for code in np.unique(self._state.steps()[:, 0])]

    def tensors(
        self,
        *,
        kind: Kind | str | Sequence[Kind | str] | None = None,
        regex: str | None = None,
        collection: str | None = None,
        module: str | None = None,
        mode: Mode | str | None = None,
    ) -> list[TensorKey]:
        """Tensors by kind, name (searched), collection, module (it and all below) and mode.

        In the order of their first appearance.

        Raises
        ------
        ConfigError
            If `regex` is not a regular expression, or there is no such kind or mode.
        """
        pattern = _pattern(regex)
        kinds = _kinds(kind)
        mask = -1 if mode is None else 1 << _mode_code(mode)
        with self._lock:
            names = self._state.names
            return [
                key
                for key, modes in zip(names.keys, names.modes, strict=True)
                if modes & mask
                and (kinds is None or key.kind in kinds)
                and (pattern is None or pattern.search(key.name))
                and (collection is None or collection in key.collections)
                and (module is None or key.module == module or key.module.startswith(f"{module}."))
            ]

    def tensor_names(
        self,
        *,
        regex: str | None = None,
        kind: Kind | str | Sequence[Kind | str] | None = None,
        collection: str | None = None,
        mode: Mode | str | None = None,
        step: int | None = None,
    ) -> list[str]:
        """Names as `tensors`; with `step` only those that have a row there."""
        keys = self.tensors(regex=regex, kind=kind, collection=collection, mode=mode)
        if step is None:
            return [key.name for key in keys]
        with self._lock:
            codes = range(len(MODES)) if mode is None else [_mode_code(mode)]
            parts = [self._state.read(Query(code, None, (), step, step)) for code in codes]
            here = {self._state.names.keys[i].name for part in parts for i in part.tensor}
        return [key.name for key in keys if key.name in here]

    def steps(self, *, mode: Mode | str | None = None, tensor: str | None = None) -> NDArray[np.int64]:
        """Steps with rows, ascending, shape ``(S,)``.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        with self._lock:
            code = self._code(mode)
            if tensor is not None:
                return self._read([tensor], code, ()).step
            table = self._state.steps()
            return np.ascontiguousarray(table[table[:, 0] == code, 1])

    def step_times(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Training steps and when each was written, ns, shapes ``(S,)``."""
        with self._lock:
            table = self._state.steps()
            rows = table[table[:, 0] == MODE_CODE["train"]]
            return np.ascontiguousarray(rows[:, 1]), np.ascontiguousarray(rows[:, 2])

    def tensor(self, name: str) -> Tensor:
        """One tensor.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        with self._lock:
            found = self._state.names.ids.get(name)
            if found is not None:
                return Tensor(self, self._state.names.keys[found])
            if any(name in self._names_in(file) for files in self._raw.values() for file in files):
                from tdbg_lab.records import TensorKey

                return Tensor(self, TensorKey(name, Kind.CUSTOM))
        raise NotFoundError(f"There is no tensor {name!r} in run {self.info.name}.")

    def scalars(self, name: str, *, mode: Mode | str | None = None, rank: int | None = None) -> Series:
        """A scalar over steps.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        with self._lock:
            part = self._read([name], self._code(mode, name), needed(["value", "time_ns"]), rank=rank)
        return Series(part.step, scalar_values(part), part.columns["time_ns"].astype(np.int64))

    def stats(
        self,
        names: str | Sequence[str],
        columns: str | Sequence[str],
        *,
        mode: Mode | str | None = None,
        steps: tuple[int | None, int | None] | None = None,
        rank: int | None = None,
    ) -> pd.DataFrame:
        """One row per tensor and step: ``tensor``, ``mode``, ``step`` and `columns`.

        Parameters
        ----------
        columns
            Of the stats table, derived ones (`tdbg_lab.store.table.COLUMNS`) or quantiles ``q01``.
        steps
            First and last step, both inclusive; None leaves an end open.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        ConfigError
            If there is no such column.
        """
        names = [names] if isinstance(names, str) else list(names)
        columns = [columns] if isinstance(columns, str) else list(columns)
        with self._lock:
            code = self._code(mode, names[0] if names else None)
            part = self._read(names, code, needed(columns), steps=steps, rank=rank)
            return self._frame(part, code, columns)

    def to_pandas(
        self,
        *,
        regex: str | None = None,
        kind: Kind | str | Sequence[Kind | str] | None = None,
        mode: Mode | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Statistics of all tensors that match, in all modes unless one is given, as `stats`."""
        import pandas as pd

        columns = list(_DEFAULT_COLUMNS if columns is None else columns)
        modes = self.modes() if mode is None else [Mode(mode)]
        with self._lock:
            frames = []
            for one in modes or [Mode.TRAIN]:
                names = self.tensor_names(regex=regex, kind=kind, mode=one)
                code = _mode_code(one)
                frames.append(self._frame(self._read(names, code, needed(columns)), code, columns))
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]

    def overview(
        self,
        *,
        kind: Kind | str | Sequence[Kind | str] | None,
        column: str,
        mode: Mode | str | None = "train",
        n_out: int | None = None,
    ) -> Overview:
        """One statistic of all tensors of a kind over steps; at most `n_out` steps, evenly chosen.

        Raises
        ------
        ConfigError
            If there is no such column or kind.
        """
        with self._lock:
            code = self._code(mode)
            names = self.tensor_names(kind=kind, mode=MODES[code])
            ids = [self._state.names.ids[name] for name in names]
            part = self._read(names, code, needed([column]))
            steps = np.unique(part.step)
            values = np.full((len(names), len(steps)), np.nan)
            row_of = np.full(len(self._state.names.keys) + 1, -1)
            row_of[ids] = np.arange(len(ids))
            values[row_of[part.tensor], np.searchsorted(steps, part.step)] = derive(part, column)
        if n_out is not None and len(steps) > max(n_out, 2):
            chosen = np.unique(np.linspace(0, len(steps) - 1, max(n_out, 2)).round().astype(np.int64))
            steps, values = steps[chosen], values[:, chosen]
        return Overview(tuple(names), steps, values)

    def spans(
        self, *, start_ns: int | None = None, end_ns: int | None = None, phases: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Spans that start between, by start: columns of the spans table and ``rank``."""
        frame = self._events("spans", start_ns, end_ns)
        return frame if phases is None else frame[frame["phase"].isin(list(phases))].reset_index(drop=True)

    def samples(
        self,
        *,
        metrics: Sequence[str] | None = None,
        devices: Sequence[str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
    ) -> pd.DataFrame:
        """Samples of system metrics, by time: ``time_ns``, ``metric``, ``device``, ``value``, ``rank``."""
        frame = self._events("system", start_ns, end_ns)
        for column, wanted in (("metric", metrics), ("device", devices)):
            if wanted is not None:
                frame = frame[frame[column].isin(list(wanted))]
        return frame.reset_index(drop=True)

    def findings(self) -> list[Finding]:
        """What rules found so far."""
        return list(self._findings[1])

    def rule_states(self) -> list[RuleState]:
        """Where the rules stand."""
        return list(self._findings[2])

    def raw_steps(self, name: str, *, mode: Mode | str | None = None) -> list[int]:
        """Steps at which the raw value of a tensor was saved, ascending."""
        with self._lock:
            return sorted({file.step for file in self._raw_files(name, mode, None)})

    def raw_names(self) -> list[str]:
        """Tensors whose raw value was saved at some step, by name; labels are not listed."""
        with self._lock:
            found = {name for files in self._raw.values() for file in files for name in self._names_in(file)}
        return sorted(name for name in found if not name.endswith(LABELS))

    def request_stop(self, reason: str = "", by: str = "") -> str:
        """Ask the training process to stop; returns the id of the request.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        return control.request(self.path, "stop", reason=reason, by=by)

    def edit(
        self, *, name: str | None = None, tags: Sequence[str] | None = None, notes: str | None = None
    ) -> None:
        """Change name, tags or notes; None leaves one as it is.

        Raises
        ------
        ConfigError
            If a value is too long.
        StoreError
            If it cannot be written.
        """
        write_edits(self.path, name=name, tags=tags, notes=notes)
        self.refresh()

    def _refresh_info(self) -> bool:
        try:
            info = read_info(self.path)
        except (OSError, ValueError):  # deleted, or being made: what we know stands
            return False
        changed, other = info != self._info, info.id != self._info.id
        self._info = info
        if other:  # another run took the place
            self._state = RunState(self.path)
            self._raw, self._raw_names = {}, {}
        return changed

    def _refresh_findings(self) -> bool:
        stamp = findings_stamp(self.path)
        if stamp == self._findings[0]:
            return False
        self._findings = (stamp, read_findings(self.path), read_rule_states(self.path))
        return True

    def _refresh_raw(self) -> bool:
        found = {rank: list_raw(rank_path(self.path, rank)) for rank in self._state.ranks}
        changed = found != self._raw
        self._raw = found
        return changed

    def _code(self, mode: Mode | str | None, tensor: str | None = None) -> int:
        """Mode code; None means train if there is train data (of `tensor`), else the first there is."""
        if mode is not None:
            return _mode_code(mode)
        found = None if tensor is None else self._state.names.ids.get(tensor)
        if found is not None:
            mask = self._state.names.modes[found]
            return next((code for code in range(len(MODES)) if mask >> code & 1), 0)
        codes = np.unique(self._state.steps()[:, 0])
        return int(codes[0]) if len(codes) else 0

    def _read(
        self,
        names: Sequence[str],
        code: int,
        columns: Sequence[str],
        *,
        steps: tuple[int | None, int | None] | None = None,
        rank: int | None = None,
    ) -> Part:
        ids = self._state.names.ids
        for name in names:
            if name not in ids:
                raise NotFoundError(f"There is no tensor {name!r} in run {self.info.name}.")
        first, last = steps if steps is not None else (None, None)
        first = -_FOREVER if first is None else int(first)
        last = _FOREVER if last is None else int(last)
        return self._state.read(
            Query(code, tuple(ids[name] for name in names), tuple(columns), first, last), rank
        )

    def _frame(self, part: Part, code: int, columns: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        used, codes = np.unique(part.tensor, return_inverse=True)
        categories = [self._state.names.keys[i].name for i in used]
        frame = pd.DataFrame({"tensor": np.array(categories, dtype=object)[codes]})
        frame["mode"] = str(MODES[code])
        frame["step"] = part.step
        for column in columns:
            frame[column] = derive(part, column)
        return frame

    def _events(self, stream: str, start_ns: int | None, end_ns: int | None) -> pd.DataFrame:
        import pandas as pd

        from tdbg_lab.store.events import TIME
        from tdbg_lab.store.schema import SCHEMAS

        first = -_FOREVER if start_ns is None else int(start_ns)
        last = _FOREVER if end_ns is None else int(end_ns)
        with self._lock:
            tables = self._state.events(stream, first, last)
        frames = [table.to_pandas().assign(rank=rank) for rank, table in tables if table.num_rows]
        if not frames:
            frames = [SCHEMAS[stream].empty_table().to_pandas().assign(rank=np.empty(0, np.int64))]
        frame: pd.DataFrame = pd.concat(frames, ignore_index=True).drop(columns="seq")
        frame.sort_values(TIME[stream], kind="stable", ignore_index=True, inplace=True)  # noqa: PD002
        return frame

    def _raw_files(self, name: str, mode: Mode | str | None, rank: int | None) -> list[RawFile]:
        files = [
            file
            for r, found in self._raw.items()
            if rank in (None, r)
            for file in found
            if name in self._names_in(file)
        ]
        if mode is not None:
            return [file for file in files if file.mode == Mode(mode)]
        chosen = min((MODE_CODE[str(file.mode)] for file in files), default=0)
        return [file for file in files if MODE_CODE[str(file.mode)] == chosen]

    def _names_in(self, file: RawFile) -> frozenset[str]:
        try:
            stamp = file.path.stat().st_mtime_ns
        except OSError:
            return frozenset()
        key = file.path.with_name(f"{file.path.name}@{stamp}")
        found = self._raw_names.get(key)
        if found is None:
            try:
                found = frozenset(raw_header(file.path))
            except (OSError, ValueError):
                found = frozenset()
            self._raw_names[key] = found
        return found


class Tensor:
    """One tensor of a run."""

    def __init__(self, run: Run, key: TensorKey) -> None:
        self.run = run
        self.key = key
        self.name = key.name

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {self.key.kind}, {self.key.dtype} {list(self.key.shape)}>"

    def steps(self, mode: Mode | str | None = None) -> NDArray[np.int64]:
        """Steps with statistics, ascending, shape ``(S,)``."""
        part = self._part((), mode, None, None)
        return part.step

    def value(self, step: int, mode: Mode | str | None = None, rank: int | None = None) -> NDArray[Any]:
        """Raw value at a step; several ranks or micro-steps are joined along the first axis.

        Raises
        ------
        StepNotFoundError
            If it was not saved there.
        """
        return self._raw(self.name, step, mode, rank)

    def labels(
        self, step: int, mode: Mode | str | None = None, rank: int | None = None
    ) -> NDArray[Any] | None:
        """Labels recorded with the value at a step, one per row; None when there are none."""
        try:
            return self._raw(self.name + LABELS, step, mode, rank)
        except StepNotFoundError:
            return None

    def values(self, mode: Mode | str | None = None) -> dict[int, NDArray[Any]]:
        """All raw values by step."""
        return {step: self.value(step, mode) for step in self.run.raw_steps(self.name, mode=mode)}

    def stats(self, step: int, *, mode: Mode | str | None = None, rank: int | None = None) -> StatsBlock:
        """Statistics at a step, one row.

        Raises
        ------
        StepNotFoundError
            If there are none.
        """
        part = self._part(_BLOCK, mode, (step, step), rank)
        if not len(part.step):
            raise StepNotFoundError(f"{self.name} has no statistics at step {step}.")
        return block_of(part)

    def history(
        self,
        columns: str | Sequence[str],
        *,
        mode: Mode | str | None = None,
        rank: int | None = None,
        steps: tuple[int | None, int | None] | None = None,
    ) -> pd.DataFrame:
        """`columns` over steps, see `Run.stats`."""
        return self.run.stats([self.name], columns, mode=mode, rank=rank, steps=steps)

    def histograms(
        self,
        *,
        mode: Mode | str | None = None,
        steps: tuple[int | None, int | None] | None = None,
        n_out: int | None = None,
        rank: int | None = None,
    ) -> HistogramSeries:
        """Histograms over steps; with `n_out` adjacent steps merge, the first and the last stay alone."""
        part = self._part(_BLOCK, mode, steps, rank)
        block, n = block_of(part), len(part.step)
        if n_out is None or n <= max(n_out, 3):
            return HistogramSeries(part.step, block)
        from tdbg_lab.store.merge import merge

        inner = (np.arange(n - 2) * (max(n_out, 3) - 2)) // (n - 2) + 1
        groups = np.concatenate([[0], inner, [inner[-1] + 1]]).astype(np.int64)
        first = np.flatnonzero(np.r_[True, np.diff(groups) > 0])
        return HistogramSeries(part.step[first], merge(block, groups, len(first)))

    def _part(
        self,
        columns: Sequence[str],
        mode: Mode | str | None,
        steps: tuple[int | None, int | None] | None,
        rank: int | None,
    ) -> Part:
        run = self.run
        with run._lock:  # noqa: SLF001 - a tensor is a view of its run
            if self.name not in run._state.names.ids:  # noqa: SLF001
                return run._read([], 0, columns)  # noqa: SLF001
            code = run._code(mode, self.name)  # noqa: SLF001
            return run._read([self.name], code, columns, steps=steps, rank=rank)  # noqa: SLF001

    def _raw(self, name: str, step: int, mode: Mode | str | None, rank: int | None) -> NDArray[Any]:
        run = self.run
        with run._lock:  # noqa: SLF001
            files = [f for f in run._raw_files(name, mode, rank) if f.step == step]  # noqa: SLF001
        found = []
        for file in files:
            try:
                found.append(read_raw(file.path, name))
            except (OSError, ValueError, KeyError):
                continue
        if not found:
            raise StepNotFoundError(f"The value of {name} was not saved at step {step}.")
        joinable = all(a.ndim and a.shape[1:] == found[0].shape[1:] for a in found)
        return np.concatenate(found) if len(found) > 1 and joinable else found[0]


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


def _mode_code(mode: Mode | str) -> int:
    code = MODE_CODE.get(str(mode))
    if code is None:
        raise ConfigError(f"There is no mode {str(mode)[:80]!r}; choose from {', '.join(MODES)}.")
    return code
