"""What a process writes into its rank directory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tdbg_lab.errors import StoreError
from tdbg_lab.store.arrays import event_array, number_array
from tdbg_lab.store.attempts import begin_attempt, read_attempts
from tdbg_lab.store.failures import forget_failure, write_failure
from tdbg_lab.store.info import run_id
from tdbg_lab.store.layout import entries, rank_path
from tdbg_lab.store.messages import StatsMessages
from tdbg_lab.store.number_rows import NumberRows
from tdbg_lab.store.raw_writer import RawWriter
from tdbg_lab.store.seal import Sealer
from tdbg_lab.store.stream import RankPlace, StreamWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import Mode, StatsRows, TensorKey

_CLOSE_TIMEOUT_S = 60.0


class RankWriter:
    """Writes statistics, spans and raw values of one rank. One process, one writer.

    A new segment begins with every writer; leftovers of a crashed process are sealed, never
    appended to.

    Parameters
    ----------
    goes_on_at
        The step of each mode that comes next where training goes on from a checkpoint: what the rank has
        written of it and of later steps counts no more.

    Raises
    ------
    StoreError
        If the rank directory cannot be made.
    """

    def __init__(
        self,
        run_path: str | Path,
        rank: int = 0,
        *,
        seal: bool = True,
        goes_on_at: Mapping[Mode, int] | None = None,
    ) -> None:
        place = _rank_place(Path(run_path), rank, ("stats", "spans"))
        self.path = place.path
        self._sealer = Sealer() if seal else None
        self._messages = StatsMessages()
        self._stats = StreamWriter(place, "stats", self._sealer)
        self._spans = StreamWriter(place, "spans", self._sealer)
        attempts = read_attempts(self.path)
        if goes_on_at is not None:
            attempts = begin_attempt(self.path, self._stats.next_segment, goes_on_at)
        self._raw = RawWriter(self.path, attempt=attempts.latest, is_ours=place.is_ours)
        forget_failure(self.path)

    @property
    def bytes_written(self) -> int:
        """Bytes handed to the file system so far, sealing not counted."""
        return self._stats.bytes_written + self._spans.bytes_written + self._raw.bytes_written

    @property
    def dropped(self) -> dict[str, int]:
        """What was not written: batches of ``stats`` and ``spans``, tensors of ``raw``."""
        return {"stats": self._stats.dropped, "spans": self._spans.dropped, "raw": self._raw.dropped}

    def take_gaps(self) -> list[str]:
        """What is missing, one sentence each, where writing failed and goes on since the last call."""
        found: list[str] = []
        for one in (self._stats, self._spans, self._raw):
            while one.gaps:
                found.append(one.gaps.pop(0))
        return found

    @property
    def raw_left_out(self) -> str | None:
        """Why some raw values were not written, though writing goes on; None as long as all were."""
        return self._raw.left_out

    def append(self, rows: StatsRows) -> None:
        """Write one step; it is in the page cache when this returns.

        Raises
        ------
        StoreError
            When it cannot be written, once until that goes well again; rows are dropped and counted
            meanwhile.
        """
        if rows.keys:
            self._stats.append(lambda seq, schema: self._messages.encode(rows, seq, schema))

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
        """Write numbers of several steps as one batch, one row each: a batch a number would be dear.

        Raises
        ------
        StoreError
            As `append`.
        """
        if keys:
            numbers = NumberRows(steps, time_ns, tuple(keys), values, mode, micro)
            self._stats.append(lambda seq, schema: self._messages.encode_numbers(numbers, seq, schema))

    def append_spans(  # noqa: PLR0917 - the order of the table
        self,
        names: Sequence[str],
        phases: Sequence[str],
        start_ns: Sequence[int] | NDArray[np.int64],
        duration_ns: Sequence[int] | NDArray[np.int64],
        steps: Sequence[int] | NDArray[np.int64],
        device: str | Sequence[str] = "",
        thread: int | Sequence[int] = 0,
    ) -> None:
        """Write spans, one batch a call. A step of -1 says that it is not known.

        Raises
        ------
        StoreError
            As `append`.
        """
        n = len(names)
        if n:
            columns = (names, phases, start_ns, duration_ns, steps, _spread(device, n), _spread(thread, n))
            self._spans.append(lambda seq, schema: _encode_events(columns, seq, schema))

    def write_raw(
        self, step: int, tensors: Mapping[str, NDArray[Any]], *, mode: Mode, micro: int = 0
    ) -> None:
        """Write copies of raw values in the background; drops them, counted, when the queue is full.

        Raises
        ------
        StoreError
            When an earlier write failed, once until one goes well again; values are dropped and counted
            meanwhile.
        """
        if tensors:
            self._raw.write(step, tensors, mode, micro)

    def write_failure(self, error: str) -> None:
        """Say what ends this process; for one that does not speak for the run.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        write_failure(self.path, error)

    def flush(self) -> None:
        """Wait until raw values are written; rows and spans always are."""
        self._raw.flush()

    def close(self) -> None:
        """End the open segments, seal them and write what is queued. Idempotent."""
        self._stats.close()
        self._spans.close()
        self._raw.close()
        if self._sealer is not None:
            self._sealer.close(_CLOSE_TIMEOUT_S)


class SystemWriter:
    """Writes samples of system metrics of one rank's machine; belongs to the sampler process.

    Raises
    ------
    StoreError
        If the rank directory cannot be made.
    """

    def __init__(self, run_path: str | Path, rank: int = 0, *, seal: bool = True) -> None:
        self._sealer = Sealer() if seal else None
        place = _rank_place(Path(run_path), rank, ("system",))
        self.path = place.path
        """Directory of the rank."""
        self._stream = StreamWriter(place, "system", self._sealer)

    def append(
        self,
        time_ns: int,
        metrics: Sequence[str],
        devices: Sequence[str],
        values: Sequence[float] | NDArray[np.float64],
    ) -> None:
        """Write one reading of several metrics, in the units their names say.

        Raises
        ------
        StoreError
            As `RankWriter.append`.
        """
        if len(metrics):
            columns = ([time_ns] * len(metrics), metrics, devices, values)
            self._stream.append(lambda seq, schema: _encode_events(columns, seq, schema))

    def close(self) -> None:
        """End the open segment and seal it. Idempotent."""
        self._stream.close()
        if self._sealer is not None:
            self._sealer.close(_CLOSE_TIMEOUT_S)


def _rank_place(run_path: Path, rank: int, streams: tuple[str, ...]) -> RankPlace:
    """Make the directory of a rank; what a crashed sealer of `streams` left half done goes."""
    path = rank_path(run_path, rank)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"Cannot write to run {run_path.name}: {error.strerror}.") from error
    for entry in entries(path):
        if entry.name.endswith(".tmp") and entry.name.startswith(tuple(f".{stream}-" for stream in streams)):
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()
    return RankPlace(path, rank, run_id(run_path))


def _spread(value: Any, n: int) -> Any:
    return [value] * n if isinstance(value, (str, int)) else value


def _encode_events(columns: Sequence[Any], seq: int, schema: pa.Schema) -> memoryview:
    types = schema.types
    arrays = [event_array(values, types[i]) for i, values in enumerate(columns)]
    arrays.append(number_array(np.full(len(arrays[0]), seq, np.int64), types[-1]))
    return memoryview(pa.RecordBatch.from_arrays(arrays, schema=schema).serialize())
