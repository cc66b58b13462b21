"""What a look at a run directory tells without opening the run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import RunStatus
from tdbg_lab.store.info import EDITS_FILE, RUN_FILE
from tdbg_lab.store.listing import summarize_run
from tdbg_lab.store.smdebug.survey import stamp as foreign_stamp

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.server.roots import Entry

__all__ = ["Line", "read_line"]


ENDED = frozenset({RunStatus.FINISHED, RunStatus.STOPPED, RunStatus.FAILED})
"""These do not change without a new ``run.json``."""


@dataclass(frozen=True, slots=True)
class Line:
    """A run in the list."""

    stamp: tuple[int, ...]
    """Changes when ``run.json`` or ``edits.json`` do."""
    name: str
    status: RunStatus
    created_ns: int
    ended_ns: int | None
    last_step: int
    last_write_ns: int | None
    tags: tuple[str, ...]
    notes: str
    framework: str


def read_line(entry: Entry, known: Line | None) -> Line | None:
    """Read a run's line; of a run that has ended and did not change since `known`, only the stamp.

    Returns
    -------
    None when the directory is no run (any more).
    """
    stamp: tuple[int, ...] = (*_stamp(entry.directory / RUN_FILE), *_stamp(entry.directory / EDITS_FILE))
    if not any(stamp[:2]):  # no run.json: a store of another library, or nothing any more
        stamp = (*stamp, *foreign_stamp(entry.directory))
    if known is not None and known.stamp == stamp and known.status in ENDED:
        return known
    try:
        summary = summarize_run(entry.directory)
    except (OSError, ValueError):
        return None
    info = summary.info
    return Line(
        stamp=stamp,
        name=info.name,
        status=summary.status,
        created_ns=info.created_ns,
        ended_ns=info.ended_ns,
        last_step=summary.last_step,
        last_write_ns=summary.last_write_ns or None,
        tags=tuple(info.tags),
        notes=info.notes,
        framework=info.framework,
    )


def _stamp(path: Path) -> tuple[int, int]:
    """Time of change and size of a file; zeros when it is not there."""
    try:
        facts = os.lstat(path)
    except OSError:
        return (0, 0)
    return (facts.st_mtime_ns, facts.st_size)
