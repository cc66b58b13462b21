"""Making a run directory, and saying where the run stands. Belongs to the training process."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.errors import ConflictError, NotFoundError, StoreError
from tdbg_lab.records import RunStatus
from tdbg_lab.store.control import CONTROL, Request, pending, refuse_pending
from tdbg_lab.store.info import RUN_FILE, RunInfo, read_info
from tdbg_lab.store.jsonable import jsonable
from tdbg_lab.store.layout import read_json, write_json, write_over
from tdbg_lab.store.limits import FORMAT, MAX_NAME_CHARS, MAX_TAGS, MAX_TEXT_CHARS
from tdbg_lab.store.process import ProcessMark, number_space
from tdbg_lab.store.secrets import mask_values, mask_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GIT_TIMEOUT_S = 2.0
_POLL_S = 0.05


class RunFolder:
    """A run directory, seen by the process that trains."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def info(self) -> RunInfo:
        """The description as it stands on disk."""
        return read_info(self.path)

    def set_status(
        self, status: RunStatus | str, error: str | None = None, *, last_step: int | None = None
    ) -> None:
        """Say where the run stands; every status but ``running`` ends it now, and what was asked of it.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        status = RunStatus(status)
        try:
            value = read_json(self.path / RUN_FILE)
        except (OSError, ValueError) as problem:
            raise StoreError(f"Cannot read {RUN_FILE} of run {self.path.name}: {problem}.") from problem
        value["status"] = str(status)
        value["error"] = None if error is None else error[:MAX_TEXT_CHARS]
        value["ended_ns"] = None if status == RunStatus.RUNNING else time.time_ns()
        if last_step is not None:
            value["last_step"] = last_step
        if status is not RunStatus.RUNNING:  # first: who sees that it has ended waits for no answer
            refuse_pending(self.path, "the training ended before it came to that")
        try:
            write_json(self.path / RUN_FILE, value)
        except StoreError:  # a full disk, say: a run that ended would read as one that crashed
            if not write_over(self.path / RUN_FILE, value):
                raise

    def control(self) -> list[Request]:
        """Requests waiting for an answer; cheap to poll."""
        return pending(self.path)


def create_run(
    path: str | Path,
    *,
    name: str | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    notes: str = "",
    framework: str = "",
    framework_version: str = "",
    world_size: int = 1,
    capture: Mapping[str, Any] | None = None,
    if_exists: Literal["new", "resume", "error"] = "new",
) -> RunFolder:
    """Make a run directory. Only the chief rank does; others `join_run`.

    Parameters
    ----------
    path
        Where; folders above are made.
    if_exists
        What to do when there is something already: ``new`` takes the first free of ``path-2``,
        ``path-3``, ...; ``resume`` goes on in the same run; ``error`` raises.

    Raises
    ------
    ConflictError
        If it exists and `if_exists` is ``error``, or another process still writes into what is resumed.
    StoreError
        If it cannot be written.
    """
    path = Path(path).absolute()
    value = {
        "format": FORMAT,
        "id": uuid.uuid4().hex,
        "name": (name or path.name)[:MAX_NAME_CHARS],
        "created_ns": time.time_ns(),
        "framework": framework,
        "framework_version": framework_version,
        "hyperparameters": mask_values(jsonable(hyperparameters or {})),
        "tags": [str(tag)[:MAX_NAME_CHARS] for tag in tags][:MAX_TAGS],
        "notes": notes[:MAX_TEXT_CHARS],
        "git": _git_facts(),
        "capture": jsonable(capture or {}),
    }
    try:
        path, existing = _claim(path, if_exists)
    except OSError as error:
        raise StoreError(f"Cannot make run directory {path.name}: {error.strerror or error}.") from error
    if existing:
        _require_left(path)
        refuse_pending(path, "the training that was asked has ended; ask again")
    if name is None and not existing:
        value["name"] = path.name
    value.update({key: existing[key] for key in ("id", "name", "created_ns") if key in existing})
    value.update(_process_facts(world_size))
    try:
        write_json(path / RUN_FILE, value)
    except StoreError:
        if not existing:
            _give_back(path)
        raise
    return RunFolder(path)


def join_run(path: str | Path, rank: int, *, timeout_s: float = 60.0) -> RunFolder:
    """The run the chief rank makes, for rank `rank`; waits until it is there.

    Raises
    ------
    NotFoundError
        If it does not appear within `timeout_s`.
    """
    path = Path(path).absolute()
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(OSError, ValueError):
            read_info(path)
            return RunFolder(path)
        if time.monotonic() > deadline:
            raise NotFoundError(f"Rank {rank} found no run {path.name} within {timeout_s:g} s.")
        time.sleep(_POLL_S)


def _claim(path: Path, if_exists: str) -> tuple[Path, dict[str, Any]]:
    """Make `path` or its successor ours alone; also the description of the run that is resumed."""
    attempt, number = path, 1
    while True:
        attempt.mkdir(parents=True, exist_ok=True)
        if _is_free(attempt):
            return attempt, {}
        if if_exists == "error":
            raise ConflictError(f"Run {path.name} exists. Choose another path or if_exists.")
        if if_exists == "resume":
            with contextlib.suppress(OSError, ValueError):
                return attempt, read_json(attempt / RUN_FILE)
            return attempt, {}
        number += 1
        attempt = path.with_name(f"{path.name}-{number}")


def _give_back(path: Path) -> None:
    """Leave no folder behind that holds nothing: the next run would have to take another name."""
    with contextlib.suppress(OSError):
        (path / CONTROL).rmdir()
        path.rmdir()


def _require_left(path: Path) -> None:
    """Check that nobody writes into a run that is to be resumed: each would take the other's files away.

    Raises
    ------
    ConflictError
        If another process of this machine does.
    """
    try:
        info = read_info(path)
    except (OSError, ValueError):
        return
    alive = info.status is RunStatus.RUNNING and info.is_local and info.process.find() is not None
    if alive and info.pid != os.getpid():
        raise ConflictError(
            f"Run {path.name} is being written by process {info.pid}, which is alive: "
            "end that training first, or choose another path or if_exists."
        )


def _is_free(folder: Path) -> bool:
    """Take an empty folder by making its ``control``; of several processes one succeeds.

    Not by making ``run.json``: that file appears at once, whole.
    """
    if any(folder.iterdir()):
        return False
    try:
        (folder / CONTROL).mkdir()
    except FileExistsError:
        return False
    return True


def _process_facts(world_size: int) -> dict[str, Any]:
    process = ProcessMark.own()
    return {
        "ended_ns": None,
        "status": str(RunStatus.RUNNING),
        "error": None,
        "python": platform.python_version(),
        "host": platform.node(),
        "pid": process.pid,
        "process_created_s": process.created_s,
        "process_since_boot_s": process.since_boot_s,
        "process_space": number_space(),
        "command": shlex.join(mask_words([str(word) for word in sys.argv]))[:MAX_TEXT_CHARS],
        "world_size": world_size,
    }


def _git_facts() -> dict[str, str] | None:
    """Commit and branch of the working directory, or None outside a repository."""
    command = ["git", "rev-parse", "HEAD", "--abbrev-ref", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.decode("utf-8", "replace").split()
    return {"commit": lines[0], "branch": lines[1]} if len(lines) == 2 else None
