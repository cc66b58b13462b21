"""Sealing: a closed live segment becomes a sorted, compressed Parquet file with an index.

The Parquet file is written aside and renamed, then the live file goes. A reader that finds both
takes the sealed one, so a crash between the two steps does no harm.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import queue
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tdbg_lab.background import start_thread
from tdbg_lab.store.arrays import number_array, numbers_of
from tdbg_lab.store.file_moves import remove_file, replace_file, sync_file
from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.layout import SEALED, SegmentFile, segment_path
from tdbg_lab.store.limits import EVENT_GROUP_ROWS, ROW_GROUP_ROWS
from tdbg_lab.store.schema import METADATA_KEY, MODE_CODE, SCHEMAS

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = logging.getLogger(__name__)

KEYS_KEY = b"tdbg.keys"
"""JSON: the tensors of the segment, in the order of its rows: name, kind, module, dtype, shape,
collections, and the position of the first appearance."""
RUNS_KEY = b"tdbg.runs"
"""Base64 of int32 ``(R, 5)``: tensor, mode code, first row, rows, and 1 when its steps are exactly
the steps of its mode in this segment (a reader then need not read them)."""
STEPS_KEY = b"tdbg.steps"
"""Base64 of int64 ``(S, 3)``: mode code, step, time_ns; one row per mode and step."""
EXTENT_KEY = b"tdbg.extent"
"""JSON: first and last time in ns of a segment of spans or samples."""


@dataclass(frozen=True, slots=True)
class _Index:
    order: NDArray[np.int64]
    metadata: dict[bytes, bytes]


def seal_segment(segment: SegmentFile) -> str | None:
    """Write the sealed form of `segment` and remove the live one.

    Returns
    -------
    str | None
        Why it could not be read to its end (what was readable is sealed), else None.

    Raises
    ------
    OSError
        If a file cannot be read or written; the live segment stays.
    """
    reader = BatchReader(segment.path, SCHEMAS[segment.stream])
    batches = reader.read()
    if not batches:  # nothing was acknowledged
        if reader.problem is None:
            remove_file(segment.path)
        return reader.problem
    table = pa.Table.from_batches(batches).combine_chunks()  # `take` is slow over many chunks
    index = _index_stats(table) if segment.stream == "stats" else _index_events(table, segment.stream)
    table = table.take(number_array(index.order, pa.int64()))
    metadata = {METADATA_KEY: json.dumps(reader.metadata).encode(), **index.metadata}
    _write(table.replace_schema_metadata(None), metadata, segment)
    remove_file(segment.path)
    return reader.problem


def _write(table: pa.Table, metadata: dict[bytes, bytes], segment: SegmentFile) -> None:
    target = segment_path(segment.path.parent, segment.stream, segment.number, SEALED)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    stats = segment.stream == "stats"
    try:
        with temporary.open("wb") as file:
            writer = pq.ParquetWriter(
                file,
                table.schema,
                compression="zstd",
                use_dictionary=[f.name for f in table.schema if f.type == pa.utf8()],
                write_statistics=["tensor", "step"] if stats else True,
                column_encoding={"hist_counts.list.element": "DELTA_BINARY_PACKED"} if stats else None,
            )
            with writer:
                rows = ROW_GROUP_ROWS if stats else EVENT_GROUP_ROWS
                writer.write_table(table, row_group_size=rows)
                writer.add_key_value_metadata(metadata)
            file.flush()
            sync_file(file.fileno())
        replace_file(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _index_stats(table: pa.Table) -> _Index:
    codes = table["tensor"].combine_chunks().dictionary_encode()
    names: list[str] = codes.dictionary.to_pylist()
    alphabetical = np.argsort(np.array(names, dtype=object), kind="stable")
    rank_of = np.empty(len(names), np.int64)
    rank_of[alphabetical] = np.arange(len(names))
    tensor = rank_of[numbers_of(codes.indices)]
    modes = table["mode"].combine_chunks().dictionary_encode()
    mode_of = np.array([MODE_CODE.get(m, 0) for m in modes.dictionary.to_pylist()], np.int64)
    mode = mode_of[numbers_of(modes.indices)]
    step, micro, time_ns = (numbers_of(table[name]) for name in ("step", "micro", "time_ns"))
    order = np.lexsort((micro, step, mode, tensor))
    keys = _keys(table, tensor, names, alphabetical)
    pair = tensor[order] * len(MODE_CODE) + mode[order]
    starts = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])
    ends = np.r_[starts[1:], len(pair)]
    steps = step_table(mode, step, time_ns)
    whole = _whole(step[order], starts, ends, [steps[steps[:, 0] == m, 1] for m in mode[order][starts]])
    runs = np.stack([tensor[order][starts], mode[order][starts], starts, ends - starts, whole], axis=1)
    return _Index(
        order,
        {
            KEYS_KEY: json.dumps(keys, separators=(",", ":")).encode(),
            RUNS_KEY: base64.b64encode(runs.astype("<i4").tobytes()),
            STEPS_KEY: base64.b64encode(steps.astype("<i8").tobytes()),
        },
    )


def _whole(
    step: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: list[NDArray[np.int64]],
) -> list[bool]:
    runs = zip(starts, ends, steps, strict=True)
    return [end - start == len(of) and bool((step[start:end] == of).all()) for start, end, of in runs]


def step_table(
    mode: NDArray[np.int64], step: NDArray[np.int64], time_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Mode, step and last time of each (mode, step), sorted, shape ``(S, 3)``."""
    if not len(step):
        return np.empty((0, 3), np.int64)
    order = np.lexsort((time_ns, step, mode))
    table = np.stack([mode[order], step[order], time_ns[order]], axis=1).astype(np.int64)
    last = np.ones(len(table), bool)  # of its (mode, step); nothing of nothing
    last[:-1] = np.any(table[1:, :2] != table[:-1, :2], axis=1)
    return np.asarray(table[last])


def _keys(
    table: pa.Table, tensor: NDArray[np.int64], names: list[str], alphabetical: NDArray[np.int64]
) -> list[list[Any]]:
    n = len(names)
    first = np.full(n, len(tensor), np.int64)
    np.minimum.at(first, tensor, np.arange(len(tensor)))
    last = np.zeros(n, np.int64)
    np.maximum.at(last, tensor, np.arange(len(tensor)))
    described = table.select(["kind", "module", "dtype", "shape", "collections"]).take(
        number_array(last, pa.int64())
    )
    columns = [column.to_pylist() for column in described.columns]
    appearance = np.argsort(np.argsort(first))
    return [
        [names[alphabetical[i]], *(column[i] for column in columns), int(appearance[i])] for i in range(n)
    ]


def _index_events(table: pa.Table, stream: str) -> _Index:
    time_ns = numbers_of(table["start_ns" if stream == "spans" else "time_ns"])
    extent = [int(time_ns.min()), int(time_ns.max())]
    return _Index(np.argsort(time_ns, kind="stable"), {EXTENT_KEY: json.dumps(extent).encode()})


class Sealer:
    """Seals segments one after the other in a background thread, which starts with the first one."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[SegmentFile | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.problems: list[str] = []

    def add(self, segment: SegmentFile) -> None:
        """Seal `segment` soon; it must not be written to any more."""
        with self._lock:
            if self._thread is None:
                self._thread = start_thread(self._run, "tdbg-seal")  # else the next one tries again
        self._queue.put(segment)

    def close(self, timeout_s: float) -> None:
        """Wait until everything is sealed, at most `timeout_s`."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        _lower_priority()
        while (segment := self._queue.get()) is not None:
            try:
                problem = seal_segment(segment)
            except Exception as error:  # noqa: BLE001 - the live segment stays and is readable
                problem = f"{segment.path.name}: {error}"
            if problem is not None:
                self.problems.append(problem)
                log.debug("Sealing: %s", problem)


def _lower_priority() -> None:
    """On Linux a thread has a priority of its own: let training have the core."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
