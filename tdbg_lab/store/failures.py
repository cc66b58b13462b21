"""What ended the processes that do not speak for the run: ``rank-*/failed.json``.

Of several processes one describes the run, and often sees only that the others are gone. The one
that failed says why, in its own directory.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tdbg_lab.store.layout import list_ranks, read_json, write_json
from tdbg_lab.store.limits import MAX_TEXT_CHARS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Failure", "first_failure", "forget_failure", "write_failure"]

_FILE: Final = "failed.json"


@dataclass(frozen=True, slots=True)
class Failure:
    """How one process ended."""

    rank: int
    error: str
    time_ns: int


def write_failure(rank_path: Path, error: str) -> None:
    """Say what ended the process of this rank.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    write_json(rank_path / _FILE, {"error": error[:MAX_TEXT_CHARS], "time_ns": time.time_ns()})


def forget_failure(rank_path: Path) -> None:
    """Take back what an earlier process of this rank said: the run goes on."""
    with contextlib.suppress(OSError):
        (rank_path / _FILE).unlink()


def first_failure(run_path: Path) -> Failure | None:
    """The process that failed first; None when none said so. What cannot be read is left out."""
    found = [_read(rank, directory) for rank, directory in list_ranks(run_path)]
    return min((one for one in found if one is not None), key=lambda one: one.time_ns, default=None)


def _read(rank: int, directory: Path) -> Failure | None:
    try:
        value = read_json(directory / _FILE)
    except (OSError, ValueError):
        return None
    error, moment = value.get("error"), value.get("time_ns")
    if not isinstance(error, str) or type(moment) is not int:
        return None
    return Failure(rank, error[:MAX_TEXT_CHARS], moment)
