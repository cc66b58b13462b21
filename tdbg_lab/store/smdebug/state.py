"""A store as the reading engine of `tdbg_lab.run.Run` knows it: tensors, steps, rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.errors import StoreError
from tdbg_lab.records import Mode, TensorKey
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.parts import Names, Part, Query
from tdbg_lab.store.schema import MODE_CODE
from tdbg_lab.store.seal import step_table
from tdbg_lab.store.smdebug.catalog import GLOBAL
from tdbg_lab.store.smdebug.index_file import MODES as FILE_MODES
from tdbg_lab.store.smdebug.naming import framework_of, kind_of, module_of
from tdbg_lab.store.smdebug.rows import Row, Rows
from tdbg_lab.store.table import read_merged

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from tdbg_lab.store.smdebug.index_file import IndexFile
    from tdbg_lab.store.smdebug.profile import ProfileFolder
    from tdbg_lab.store.smdebug.store import SmdebugStore

__all__ = ["SmdebugState", "code_of", "mode_of"]

_WORKER = re.compile(r"worker_(\d{1,9})")


_MODES = {mode: Mode.TRAIN if mode == GLOBAL else Mode(mode.lower()) for mode in FILE_MODES}
_CODES = {mode: MODE_CODE[ours] for mode, ours in _MODES.items()}


def mode_of(file: IndexFile) -> Mode:
    """Mode of a file in our words; steps that are of no mode count as training."""
    return _MODES[file.mode]


def code_of(file: IndexFile) -> int:
    """Code of `mode_of`."""
    return _CODES[file.mode]


class SmdebugState:
    """Rows of a store by global step. Not thread-safe: `tdbg_lab.run.Run` holds a lock around it.

    The step is the global one: it is in order of time over all modes, as a cursor needs it, and it
    is what smdebug itself answers with unless it is asked for a mode.
    """

    def __init__(self, store: SmdebugStore, profile: ProfileFolder) -> None:
        self.store = store
        self._profile = profile
        self._forget()

    def _forget(self) -> None:
        """Begin anew: with a new store, or because another one took its place."""
        self.names = Names()
        self.ranks: list[int] = []
        self.last_write_ns = 0
        self._rows = Rows(self.store)
        self._files = self.store.files
        self._seen = 0
        self._rank_of: dict[str, int] = {}
        self._table: list[tuple[int, int, int, int]] = []
        """Mode code, step, time and rank of each file."""
        self._steps: dict[int | None, NDArray[np.int64]] = {}
        self._described = -1

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why."""
        return [*self.store.problems, *self._profile.problems][:MAX_PROBLEMS]

    def refresh(self) -> bool:
        """Read what is new; True when something came or went."""
        changed = self.store.refresh() or self._seen < len(self.store.files)
        if self._files is not self.store.files:  # another store took the place
            self._forget()
            changed = True
        for place in range(self._seen, len(self.store.files)):
            self._add(self.store.files[place], self.store.times_ns[place])
        self._seen = len(self.store.files)
        if changed:
            self._describe()
            self._steps.clear()
        changed = self._profile.refresh() or changed
        newest = max((row[2] for row in self._table), default=0)
        self.last_write_ns = max(self.last_write_ns, newest, self._profile.last_write_ns)
        return changed

    def steps(self, rank: int | None = None) -> NDArray[np.int64]:
        """Mode code, step and time_ns of all that was written, shape ``(S, 3)``."""
        found = self._steps.get(rank)
        if found is None:
            rows = [row[:3] for row in self._table if rank in {None, row[3]}]
            mode, step, time_ns = np.array(rows, np.int64).reshape(-1, 3).T
            found = self._steps[rank] = step_table(mode, step, time_ns)
        return found

    def read(self, query: Query, rank: int | None = None) -> Part:
        """Rows that fit, by tensor and step, one row for each."""
        return read_merged(lambda wanted: self.parts(wanted, rank), query)

    def parts(self, query: Query, rank: int | None = None) -> list[Part]:
        """Rows that fit; those of one tensor and step come once for each worker."""
        return [self._rows.read(query, rank)]

    def events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples of a profiler folder."""
        return self._profile.events(stream, first_ns, last_ns)

    def rank(self, worker: str) -> int:
        """Rank of a worker: its number, else the next that is free."""
        found = self._rank_of.get(worker)
        if found is None:
            match = _WORKER.fullmatch(worker)
            number = int(match[1]) if match else 0
            while number in self._rank_of.values():
                number += 1
            found = self._rank_of[worker] = number
            self.ranks = sorted(self._rank_of.values())
        return found

    def _add(self, file: IndexFile, time_ns: int) -> None:
        code, rank = code_of(file), self.rank(file.worker)
        self._table.append((code, file.step, time_ns, rank))
        row = Row(file, code, rank, time_ns)
        for name in file.layout.tensors:
            tensor = self.names.ids.get(name)
            if tensor is None:
                try:
                    tensor = self.names.add(self._key(file, name))
                except ValueError as error:
                    self.store.note("names", f"The store has {error}; later ones are left out.")
                    continue
                self._rows.add(self.names.keys[tensor])
            self.names.modes[tensor] |= 1 << code
            self._rows[tensor].rows.append(row)

    def _key(self, file: IndexFile, name: str) -> TensorKey:
        dtype, shape = "", file.shapes[name][0] if name in file.shapes else ()
        position = file.layout.values.get(name)
        if position is not None:
            try:
                content = self.store.content(file, position)
            except StoreError:  # said when its values are asked for
                pass
            else:
                dtype, shape = content.dtype_name, content.shape
        collections = self.store.collections_of(name)
        return TensorKey(name, kind_of(name, collections), module_of(name), dtype, shape, collections)

    def _describe(self) -> None:
        """Collections are written late: tell kinds again when they come."""
        described = len(self.store.collections)
        if described == self._described:
            return
        self._described = described
        self._rows.framework = framework_of(self.store.collections)
        for tensor, key in enumerate(self.names.keys):
            collections = self.store.collections_of(key.name)
            kind = kind_of(key.name, collections)
            changed = TensorKey(key.name, kind, key.module, key.dtype, key.shape, collections)
            self.names.keys[tensor] = self._rows[tensor].key = changed
