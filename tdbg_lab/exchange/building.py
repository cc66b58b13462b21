"""Building a run of what was recorded elsewhere: many rows at once, then its description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Mode, RunStatus, StatsRows, TensorKey
from tdbg_lab.stats.block import concat, scalar_block
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.info import RUN_FILE
from tdbg_lab.store.layout import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.records import Kind, StatsBlock
    from tdbg_lab.store import RunFolder

__all__ = ["RowBuffer", "begin", "finish"]

_ROWS_AT_ONCE = 2048


def begin(path: Path, *, name: str, framework: str, source: str) -> RunFolder:
    """Make the directory.

    Raises
    ------
    StoreError
        It cannot be made.
    """
    return create_run(path, name=name, framework=framework, tags=("imported",), capture={"source": source})


def finish(
    folder: RunFolder, *, created_ns: int | None, ended_ns: int | None, last_step: int, notes: str
) -> None:
    """Say that the run is over, and when it really was."""
    folder.set_status(RunStatus.FINISHED, last_step=last_step)
    value: dict[str, Any] = read_json(folder.path / RUN_FILE)
    value["notes"] = notes
    value["git"] = None
    if created_ns is not None and ended_ns is not None:
        value["created_ns"], value["ended_ns"] = created_ns, ended_ns
    write_json(folder.path / RUN_FILE, value)


class RowBuffer:
    """Rows of one mode, written in batches of many steps."""

    def __init__(self, writer: RankWriter, mode: Mode) -> None:
        self._writer = writer
        self._mode = mode
        self._keys: dict[tuple[str, Kind], TensorKey] = {}
        self._rows: list[tuple[int, int, TensorKey, float | StatsBlock]] = []

    def add(self, name: str, kind: Kind, step: int, time_ns: int, value: float | StatsBlock) -> None:
        """Add the value or the statistics (one row) of a tensor at a step."""
        key = self._keys.get((name, kind))
        if key is None:
            key = self._keys[name, kind] = TensorKey(name, kind)
        self._rows.append((step, time_ns, key, value))
        if len(self._rows) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        rows, self._rows = sorted(self._rows, key=lambda row: row[0]), []
        if not rows:
            return
        steps: Any = np.array([row[0] for row in rows], np.int64)
        times: Any = np.array([row[1] for row in rows], np.int64)
        blocks = [row[3] if not isinstance(row[3], float) else scalar_block([row[3]]) for row in rows]
        keys = tuple(row[2] for row in rows)
        self._writer.append(StatsRows(steps, self._mode, 0, times, keys, concat(blocks)))
