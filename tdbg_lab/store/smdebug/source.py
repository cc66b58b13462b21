"""A store as the source of a `tdbg_lab.run.Run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.records import RunStatus
from tdbg_lab.store.info import EDITS_FILE
from tdbg_lab.store.reader import Reader
from tdbg_lab.store.smdebug.folder import modified_ns
from tdbg_lab.store.smdebug.profile import ProfileFolder
from tdbg_lab.store.smdebug.raw import SmdebugRaw
from tdbg_lab.store.smdebug.state import SmdebugState
from tdbg_lab.store.smdebug.store import SmdebugStore
from tdbg_lab.store.smdebug.survey import stamp, status_of, store_info

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.store.info import RunInfo

__all__ = ["SmdebugSource"]


class SmdebugSource:
    """Where a run comes from that smdebug recorded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: SmdebugStore | None = None
        self._told: tuple[tuple[int, ...], RunInfo] | None = None

    def info(self) -> RunInfo:
        """The store described as a run; looked at again when it changed or goes on."""
        now = (*stamp(self._path), modified_ns(self._path / EDITS_FILE))
        if self._told is None or self._told[0] != now or self._told[1].status is RunStatus.RUNNING:
            self._told = now, store_info(self._path)
        return self._told[1]

    def status(self, info: RunInfo, last_write_ns: int) -> RunStatus:
        """Where it stands now."""
        store = self._store
        if store is None:
            return info.status
        alive_ns = max(last_write_ns, info.created_ns)
        return status_of(ended=store.ended, claimed=store.claimed, last_write_ns=alive_ns)

    def reader(self) -> Reader:
        """What reads it."""
        return Reader(self._path, self._open)

    def _open(self) -> tuple[SmdebugState, SmdebugRaw]:
        self._store = SmdebugStore(self._path)
        state = SmdebugState(self._store, ProfileFolder(self._path))
        return state, SmdebugRaw(state)
