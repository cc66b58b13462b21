"""Where a hook writes: its directory, and that of TensorBoard's event files."""

from __future__ import annotations

from pathlib import Path

from tdbg_lab.records import RunStatus
from tdbg_lab.smdebug.core.recording import rank
from tdbg_lab.smdebug.exceptions import SMDebugRuntimeError

__all__ = ["get_tensorboard_dir", "verify_and_get_out_dir"]

_EARLIER = ("run.json", "training_job_end.ts", "collections", "index")
"""What an out_dir with an earlier run in it has, ours or the predecessor's."""


def verify_and_get_out_dir(out_dir: str | Path | None, *, resumed: bool = False) -> str:
    """The directory, with the home of the user in it.

    Parameters
    ----------
    resumed
        Training goes on from a checkpoint: a run of ours that has not ended goes on with it.

    Raises
    ------
    SMDebugRuntimeError
        If it is missing or holds an earlier run.
    """
    if out_dir is None:
        raise SMDebugRuntimeError("out_dir is missing: a hook needs a directory to save into.")
    path = Path(out_dir).expanduser()
    found = [name for name in _EARLIER if (path / name).exists()]
    if found and not rank() and not (resumed and found == ["run.json"] and _unfinished(path)):
        raise SMDebugRuntimeError(
            f"out_dir {path} holds an earlier run ({found[0]} is there). Choose another one, or delete it."
        )
    return str(path)


def _unfinished(path: Path) -> bool:
    """Whether a run was cut off, and nobody writes it any more."""
    from tdbg_lab.errors import TdbgError
    from tdbg_lab.run import open_run

    try:
        return open_run(path).status in {RunStatus.CRASHED, RunStatus.FAILED, RunStatus.STOPPED}
    except TdbgError:
        return False


def get_tensorboard_dir(
    export_tensorboard: bool, tensorboard_dir: str | Path | None, out_dir: str
) -> str | None:
    """Where event files go: to the directory that was given, else into `out_dir`; None for nowhere."""
    if tensorboard_dir:
        return str(Path(tensorboard_dir).expanduser())
    return str(Path(out_dir, "tensorboard")) if export_tensorboard else None
