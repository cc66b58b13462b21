"""Whether training has ended, whether a directory is free."""

from __future__ import annotations

from pathlib import Path

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.smdebug.exceptions import SMDebugRuntimeError
from tdbg_lab.store.smdebug import is_smdebug_store

__all__ = ["check_dir_exists", "has_training_ended", "training_has_ended"]

_END = "training_job_end.ts"


def has_training_ended(trial_prefix: str) -> bool:
    """Whether the training that writes into a directory has ended; False when nothing is there."""
    path = Path(trial_prefix).expanduser()
    if (path / _END).exists():
        return True
    if is_smdebug_store(path):
        return False
    from tdbg_lab.run import open_run

    try:
        return open_run(path).status != RunStatus.RUNNING
    except NotFoundError:
        return False


def training_has_ended(trial_prefix: str) -> None:
    """Leave the mark that training has ended, where no hook does."""
    path = Path(trial_prefix).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    (path / _END).touch()


def check_dir_exists(path: str) -> None:
    """Make sure that a directory is not there yet.

    Raises
    ------
    SMDebugRuntimeError
        If it is.
    """
    if Path(path).expanduser().exists():
        raise SMDebugRuntimeError(f"{path} exists already. Choose another directory, or delete it.")
