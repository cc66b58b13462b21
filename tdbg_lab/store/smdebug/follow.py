"""Following a store step by step, in the form in which rules follow a run directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tdbg_lab.records import Mode, StatsRows
from tdbg_lab.store.parts import LISTS, REASON, Part, Query
from tdbg_lab.store.schema import MODES, SCALARS, STATS, StatsEncoder
from tdbg_lab.store.smdebug.profile import ProfileFolder
from tdbg_lab.store.smdebug.state import SmdebugState, mode_of
from tdbg_lab.store.smdebug.store import SmdebugStore
from tdbg_lab.store.table import block_of, ordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tdbg_lab.records import TensorKey
    from tdbg_lab.store.smdebug.index_file import IndexFile

__all__ = ["follow"]

_WINDOW = 32
"""Files that are measured together."""
_COLUMNS = (*SCALARS, "time_ns", *LISTS, REASON)


def follow(path: Path, cursor: str | None = None) -> Iterator[tuple[int, pa.Table, str] | None]:
    """Rank, rows and cursor of each step of each worker, in order of steps; None when there is nothing new.

    It never ends, never waits and never raises over what is on disk. A worker that is late makes its
    step come again, with its rows only.
    """
    store = SmdebugStore(path)
    state = SmdebugState(store, ProfileFolder(path))
    encoder, done = StatsEncoder(), _position(cursor)
    while True:
        state.refresh()
        files = store.files
        fresh = sorted(files[done:], key=lambda file: (file.step, state.rank(file.worker)))
        for start in range(0, len(fresh), _WINDOW):
            for rank, batch in _window(state, encoder, fresh[start : start + _WINDOW]):
                done += 1
                yield rank, pa.Table.from_batches([batch]), json.dumps(done)
        done = len(files)
        yield None


def _position(cursor: str | None) -> int:
    try:
        done = json.loads(cursor) if cursor else 0
    except ValueError:
        return 0
    return done if isinstance(done, int) and done >= 0 else 0


def _window(
    state: SmdebugState, encoder: StatsEncoder, files: Sequence[IndexFile]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of some files, one batch for each that has any."""
    first, last = files[0].step, files[-1].step
    parts: dict[tuple[str, int], Part] = {}
    for file in files:
        mode, rank = mode_of(file), state.rank(file.worker)
        if (mode, rank) not in parts:
            query = Query(MODES.index(mode), None, _COLUMNS, first, last)
            parts[mode, rank] = ordered(state.parts(query, rank)[0])
        part = parts[mode, rank]
        rows = np.flatnonzero(part.step == file.step)
        if len(rows):
            yield rank, _batch(state, encoder, part.take(rows), mode)


def _batch(state: SmdebugState, encoder: StatsEncoder, part: Part, mode: Mode) -> pa.RecordBatch:
    keys: tuple[TensorKey, ...] = tuple(state.names.keys[tensor] for tensor in part.tensor.tolist())
    step, time_ns = int(part.step[0]), int(part.columns["time_ns"].max())
    return encoder.encode(StatsRows(step, mode, 0, time_ns, keys, block_of(part)), step, STATS)
