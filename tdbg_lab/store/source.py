"""Where a run comes from: our own run directory, or a store that another library wrote."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Protocol

from tdbg_lab.store.info import RUN_FILE, RunInfo, read_info
from tdbg_lab.store.reader import Reader
from tdbg_lab.store.status import infer_status

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.records import RunStatus

__all__ = ["FOREIGN_NAMES", "RunSource", "is_foreign", "is_run", "source_of"]


FOREIGN_NAMES = frozenset({"collections", "index", "claim.smd", "training_job_end.ts", "system", "framework"})
"""Names in folders that other libraries write: one that holds none of them need not be looked at closely."""


class RunSource(Protocol):
    """What `tdbg_lab.run.Run` needs to know of a directory."""

    def info(self) -> RunInfo:
        """What the run says about itself; raises OSError or ValueError when it is no run."""

    def status(self, info: RunInfo, last_write_ns: int) -> RunStatus:
        """Where it stands now."""

    def reader(self) -> Reader:
        """What reads it."""


class OwnSource:
    """A run directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def info(self) -> RunInfo:
        """What ``run.json`` says."""
        return read_info(self._path)

    def status(self, info: RunInfo, last_write_ns: int) -> RunStatus:
        """As written, or ``crashed`` when its process is gone."""
        return infer_status(info, last_write_ns)

    def reader(self) -> Reader:
        """What reads it."""
        return Reader(self._path)


def is_run(path: Path) -> bool:
    """Whether there is a run of any origin in a folder."""
    if not os.path.isdir(path):  # noqa: PTH112 - raises over no name
        return False
    return (path / RUN_FILE).is_file() or is_foreign(path)


def is_foreign(path: Path) -> bool:
    """Whether another library wrote what is in a folder that is no run directory of ours."""
    from tdbg_lab.store.smdebug.folder import is_smdebug_store
    from tdbg_lab.store.smdebug.profile import is_profile_folder

    if (path / RUN_FILE).is_file():
        return False
    return is_smdebug_store(path) or is_profile_folder(path)


def source_of(path: Path) -> RunSource:
    """The source of a run; of our own kind where there is none."""
    if not is_foreign(path):
        return OwnSource(path)
    from tdbg_lab.store.smdebug.source import SmdebugSource

    return SmdebugSource(path)
