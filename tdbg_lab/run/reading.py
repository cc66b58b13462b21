"""`Run`: the one way to read a run.

Reads work on the state of the last `Run.refresh`. Rows of the same tensor, mode and step merge over
ranks and micro-steps. A run with nothing in it answers empty; nothing on disk makes a read raise:
what cannot be read is left out, and `Run.problems` says why.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.records import Kind, Mode, RunStatus, TensorKey
from tdbg_lab.run.requests import Requests
from tdbg_lab.store.findings import as_left, findings_stamp, read_findings, read_rule_states
from tdbg_lab.store.info import write_edits
from tdbg_lab.store.listing import is_set_up
from tdbg_lab.store.loaders import read_loaders
from tdbg_lab.store.machines import read_machines
from tdbg_lab.store.profiles import list_profiles
from tdbg_lab.store.results import Series
from tdbg_lab.store.schema import MODE_CODE, MODES, mode_code
from tdbg_lab.store.source import source_of
from tdbg_lab.store.table import needed, scalar_values
from tdbg_lab.store.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.store.info import RunInfo
    from tdbg_lab.store.loaders import LoaderFacts
    from tdbg_lab.store.machines import MachineFacts
    from tdbg_lab.store.profiles import ProfileInfo
    from tdbg_lab.store.reader import Steps
    from tdbg_lab.store.remote.origin import Origin
    from tdbg_lab.store.results import Overview
    from tdbg_lab.store.series import SampleSeries

__all__ = ["Run"]

_DEFAULT_COLUMNS = ("count", "nan_count", "inf_count", "zero_frac", "min", "max", "mean", "std", "l1", "l2")


class Run(Requests):
    """One run directory. Thread-safe.

    Parameters
    ----------
    mirror
        What keeps the directory like a run on an object store: each refresh lets it look there.

    Raises
    ------
    NotFoundError
        If there is no run at `path`.
    """

    def __init__(self, path: str | Path, *, mirror: Origin | None = None) -> None:
        self.path = Path(path).absolute()
        self._mirror = mirror
        self._unreachable: str | None = None
        self.version = time.time_ns() // 10**6
        """Grows with each change. Begins higher than it was in what was opened there before."""
        try:
            self._source = source_of(self.path)
            self._info = self._source.info()
        except OSError as error:
            raise NotFoundError(f"There is no run at {self.path.name}: {_why_none(self.path)}.") from error
        except ValueError as error:
            raise NotFoundError(f"{self.path.name} is not a run of this version: {error}.") from error
        self._reader = self._source.reader()
        self._found: tuple[Any, list[Finding], list[RuleState]] = (None, [], [])
        self.refresh()

    def __repr__(self) -> str:
        tensors = len(self.tensor_names())
        where = f"step {self.last_step}" if self.last_step >= 0 else "no steps"
        return f"<Run {self.info.name}: {self.status}, {tensors} tensors, {where}>"

    def reopen(self) -> Run:
        """The same run, to be refreshed by somebody else at other times."""
        return Run(self.path, mirror=self._mirror)

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""
        self._pull()
        with self._reader.lock:
            changed = self._refresh_info()
            changed = self._reader.refresh() or changed
            changed = self._refresh_findings() or changed
            self.version += changed
            return changed

    @property
    def info(self) -> RunInfo:
        """What the run says about itself, edits applied."""
        return self._info

    @property
    def status(self) -> RunStatus:
        """Where it stands; ``crashed`` when it says running but its process is gone."""
        return self._source.status(self._info, self._reader.state.last_write_ns)

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why."""
        remote = [] if self._mirror is None else self._mirror.problems
        return [*self._reader.state.problems, *remote, *filter(None, [self._unreachable, self._missing()])]

    def _missing(self) -> str | None:
        """What to say where steps were made, and nothing of them is here: neither rows nor spans."""
        info, state = self._info, self._reader.state
        if info.ended_ns is None or info.last_step < 1 or state.last_write_ns or state.problems:
            return None
        folders = "" if self.ranks() else "; the folders rank-00000, ... are missing"
        return (
            f"Run {info.name} went on to step {info.last_step}, but nothing of it is here: "
            f"copy its directory with all that is in it{folders}."
        )

    @property
    def last_step(self) -> int:
        """Last step of any mode with rows; -1 when there is none."""
        return int(self._steps()[:, 1].max(initial=-1))

    @property
    def first_time_ns(self) -> int | None:
        """When the first row was written; None when there is none."""
        times = self._steps()[:, 2]
        return int(times.min()) if len(times) else None

    @property
    def last_time_ns(self) -> int | None:
        """When the last row was written; None when there is none."""
        times = self._steps()[:, 2]
        return int(times.max()) if len(times) else None

    @property
    def last_write_ns(self) -> int:
        """Modification time of the newest file of rows, spans or samples; 0 when there is none."""
        return self._reader.state.last_write_ns

    def ranks(self) -> list[int]:
        """Ranks that wrote something, ascending."""
        return list(self._reader.state.ranks)

    def modes(self) -> list[Mode]:
        """Modes with rows, train first."""
        return [MODES[code] for code in np.unique(self._steps()[:, 0])]

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

        In the order of their first appearance. Facts for rules (`Kind.CHECK`) only when asked for.

        Raises
        ------
        ConfigError
            If `regex` is not a regular expression, or there is no such kind or mode.
        """
        return self._reader.keys(kind=kind, regex=regex, collection=collection, module=module, mode=mode)

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
        here = None if step is None else self._reader.names_at(step, mode)
        return [key.name for key in keys if here is None or key.name in here]

    def steps(self, *, mode: Mode | str | None = None, tensor: str | None = None) -> NDArray[np.int64]:
        """Steps with rows, ascending, shape ``(S,)``, int64; of train mode, if there is any, or of `mode`.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        ConfigError
            If there is no such mode.
        """
        code = self._reader.code(mode, tensor)
        if tensor is not None:
            return self._reader.part([tensor], code, ()).step
        table = self._steps()
        return np.ascontiguousarray(table[table[:, 0] == code, 1])

    def step_times(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Training steps and when each was written, ns, shapes ``(S,)``."""
        table = self._steps()
        rows = table[table[:, 0] == MODE_CODE["train"]]
        return np.ascontiguousarray(rows[:, 1]), np.ascontiguousarray(rows[:, 2])

    def tensor(self, name: str) -> Tensor:
        """One tensor.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        with self._reader.lock:
            names = self._reader.state.names
            if name in names.ids:
                return Tensor(self._reader, names.keys[names.ids[name]])
            if name in self._reader.raw.names():
                return Tensor(self._reader, TensorKey(name, Kind.CUSTOM))
            known = [*names.meant_by(str(name)), *self._reader.raw.names()]
        hint = did_you_mean(str(name), known, most=3)
        raise NotFoundError(f"There is no tensor {str(name)[:200]!r} in run {self.info.name}.{hint}")

    def scalars(self, name: str, *, mode: Mode | str | None = None, rank: int | None = None) -> Series:
        """A scalar over steps; of a tensor with more elements, its mean.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        ConfigError
            If there is no such mode.
        """
        code = self._reader.code(mode, name)
        part = self._reader.part([name], code, needed(["value", "time_ns"]), rank=rank)
        return Series(part.step, scalar_values(part), part.columns["time_ns"].astype(np.int64))

    def stats(
        self,
        names: str | Sequence[str],
        columns: str | Sequence[str],
        *,
        mode: Mode | str | None = None,
        steps: Steps | None = None,
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
            If there is no such column or mode.
        """
        names = [names] if isinstance(names, str) else list(names)
        columns = [columns] if isinstance(columns, str) else list(columns)
        code = self._reader.code(mode, names[0] if names else None)
        return self._reader.frame(names, columns, code, steps=steps, rank=rank)

    def to_pandas(
        self,
        *,
        regex: str | None = None,
        kind: Kind | str | Sequence[Kind | str] | None = None,
        mode: Mode | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Statistics of all tensors that match, in all modes unless one is given, as `stats`.

        Raises
        ------
        ConfigError
            If `regex` is not a regular expression, or there is no such kind, mode or column.
        """
        import pandas as pd

        wanted = list(_DEFAULT_COLUMNS if columns is None else columns)
        frames = []
        for one in (self.modes() or [Mode.TRAIN]) if mode is None else [mode]:
            names = self.tensor_names(regex=regex, kind=kind, mode=one)
            frames.append(self._reader.frame(names, wanted, mode_code(one)))
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]

    def overview(
        self,
        *,
        kind: Kind | str | Sequence[Kind | str] | None,
        column: str,
        mode: Mode | str | None = "train",
        n_out: int | None = None,
        also: Sequence[str] = (),
    ) -> Overview:
        """One statistic of all tensors of a kind over steps; at most `n_out` steps, evenly chosen.

        Parameters
        ----------
        also
            Further columns, read in the same pass, see `Overview.others`.

        Raises
        ------
        ConfigError
            If there is no such column, kind or mode.
        """
        code = self._reader.code(mode)
        names = self.tensor_names(kind=kind, mode=MODES[code])
        return self._reader.overview(names, code, [column, *also], n_out)

    def spans(
        self, *, start_ns: int | None = None, end_ns: int | None = None, phases: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Spans that start between, by start.

        Columns: ``name``, ``phase``, ``start_ns`` (ns since 1970), ``duration_ns``, ``step`` (-1: not known),
        ``device``, ``thread`` and ``rank``.
        """
        return _only(self._reader.events("spans", start_ns, end_ns), phase=phases)

    def samples(
        self,
        *,
        metrics: Sequence[str] | None = None,
        devices: Sequence[str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
    ) -> pd.DataFrame:
        """Samples of system metrics, by time.

        Columns: ``time_ns`` (ns since 1970), ``metric``, ``device``, ``value`` (in its unit), ``rank``.
        """
        return _only(self._reader.events("system", start_ns, end_ns), metric=metrics, device=devices)

    def sample_series(
        self, metrics: Sequence[str], *, start_ns: int | None = None, end_ns: int | None = None
    ) -> list[SampleSeries]:
        """Samples of some metrics, one series for each rank, metric and device, by these.

        For drawing: what was read once stays in memory, and any part of it is there at once.
        """
        return self._reader.samples(metrics, start_ns, end_ns)

    @property
    def last_sample_ns(self) -> int | None:
        """When the latest sample of system metrics was taken; None without any."""
        return self._reader.last_sample_ns()

    def findings(self) -> list[Finding]:
        """What rules found so far."""
        return list(self._found[1])

    def rule_states(self) -> list[RuleState]:
        """Where the rules stand; those whose process was killed are stopped."""
        running = self.status is RunStatus.RUNNING
        return as_left(self._found[2], self.path, running=running, local=self._info.is_local)

    def raw_steps(self, name: str, *, mode: Mode | str | None = None) -> list[int]:
        """Steps at which the raw value of a tensor was saved, ascending."""
        with self._reader.lock:
            return sorted({file.step for file in self._reader.raw.files(name, mode, None)})

    def raw_names(self) -> list[str]:
        """Tensors whose raw value was saved at some step, by name; labels are not listed."""
        with self._reader.lock:
            return sorted(self._reader.raw.names())

    def profiles(self) -> list[ProfileInfo]:
        """Profiles that were recorded, oldest first; one for each rank."""
        return list_profiles(self.path)

    def loaders(self) -> list[LoaderFacts]:
        """How the data loaders of training are set, by rank; empty when none was seen."""
        return read_loaders(self.path)

    def machines(self) -> list[MachineFacts]:
        """The machine that each rank runs on, by rank; empty where it was not sampled."""
        return read_machines(self.path)

    def clock_offsets(self) -> dict[str, float]:
        """What the clocks of machines are ahead of that of the first rank's, s, where they differ.

        It is estimated from steps, which processes of one training end together; spans, samples and times of
        steps are read as if the clocks agreed.
        """
        return self._reader.clock_offsets()

    def edit(
        self,
        *,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        notes: str | None = None,
        muted: Sequence[str] | None = None,
    ) -> None:
        """Change name, tags, notes or the muted rules; None leaves one as it is.

        Raises
        ------
        ConfigError
            If a value is too long.
        StoreError
            If it cannot be written.
        """
        write_edits(self.path, name=name, tags=tags, notes=notes, muted=muted)
        if self._mirror is not None:
            self._mirror.send_edits()
        self.refresh()

    def _steps(self) -> NDArray[np.int64]:
        with self._reader.lock:
            table, keys = self._reader.state.steps(), self._reader.state.names.keys
        # What rules check of a set-up stands at step 0, also in a run that makes no step.
        only_checks = (
            len(table) <= len(MODES) and not table[:, 1].any() and is_set_up(key.kind for key in keys)
        )
        return table[:0] if only_checks else table

    def _pull(self) -> None:
        """Fetch what is new; what is here stays readable when that fails."""
        if self._mirror is None:
            return
        try:
            self._mirror.pull()
        except (StoreError, NotFoundError) as error:
            self._unreachable = str(error)
        else:
            self._unreachable = None

    def _refresh_info(self) -> bool:
        try:
            info = self._source.info()
        except (OSError, ValueError):  # deleted, or being made: what we know stands
            return False
        changed, other = info != self._info, info.id != self._info.id
        self._info = info
        if other:  # another run took the place
            self._reader.reset()
        return changed

    def _refresh_findings(self) -> bool:
        stamp = findings_stamp(self.path)
        if stamp == self._found[0]:
            return False
        self._found = (stamp, read_findings(self.path), read_rule_states(self.path))
        return True


def _why_none(path: Path) -> str:
    """Why a directory is no run."""
    try:
        if not path.exists():
            return "there is no such folder"
    except OSError as error:  # such as a name too long
        return error.strerror or str(error)
    if next(path.glob("*/run.json"), None) is not None:
        return "it is a folder of runs, which tdbg_lab.list_runs tells"
    return "run.json is missing"


def _only(frame: pd.DataFrame, **wanted: Sequence[str] | None) -> pd.DataFrame:
    """Rows whose columns have one of the wanted values."""
    for column, values in wanted.items():
        if values is not None:
            frame = frame[frame[column].isin([values] if isinstance(values, str) else list(values))]
    return frame.reset_index(drop=True)
