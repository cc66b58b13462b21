"""Finding runs below a folder, quickly: ``run.json`` and a few `stat` calls a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind
from tdbg_lab.store.arrays import numbers_of
from tdbg_lab.store.info import RUN_FILE, RunInfo, read_info
from tdbg_lab.store.ipc import newest_batches
from tdbg_lab.store.layout import SegmentFile, entries, list_ranks, list_segments, modified_ns
from tdbg_lab.store.limits import MAX_LIST_DEPTH, MAX_LISTED_FOLDERS
from tdbg_lab.store.parquet import SealedFile
from tdbg_lab.store.parts import parse_key
from tdbg_lab.store.schema import SCHEMAS
from tdbg_lab.store.seal import KEYS_KEY, STEPS_KEY
from tdbg_lab.store.source import FOREIGN_NAMES, is_foreign
from tdbg_lab.store.status import infer_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tdbg_lab.records import RunStatus

_SKIPPED = {"node_modules", "__pycache__", "site-packages"}
_LOOKED_AT = 2
"""Newest segments that are looked into for the last step."""
_LAST_BATCHES = 4
"""Of a live segment that are read for it: steps do not go back."""
_CACHED = 4096


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line in a list of runs."""

    path: Path
    info: RunInfo
    status: RunStatus
    """With ``crashed`` inferred."""
    last_step: int
    """-1 when there is none, or it cannot be read."""
    last_write_ns: int
    """When the run ended; until then modification time of the newest segment, or of ``run.json``."""
    url: str = ""
    """Its address, when it is on an object store; `path` is then that of the local copy."""


def summarize_run(path: Path) -> RunSummary:
    """What a list shows of one run.

    Raises
    ------
    OSError, ValueError
        If there is no run.
    """
    if is_foreign(path):
        return _summarize_foreign(path)
    info = read_info(path)
    last_step = info.last_step
    if info.ended_ns is not None and last_step > 0:
        return RunSummary(path, info, info.status, last_step, info.ended_ns)
    newest, written_ns = _newest(path)
    # Older versions said 0 of a run that made none; of one on an object store nothing else is here.
    if last_step <= 0 and list_ranks(path):
        steps = (_last_step(*_stamp(segment)) for segment in newest)
        last_step = next((step for step in steps if step >= 0), -1)
    return RunSummary(path, info, infer_status(info, written_ns), last_step, info.ended_ns or written_ns)


def _summarize_foreign(path: Path) -> RunSummary:
    from tdbg_lab.store.smdebug.survey import survey

    found = survey(path)
    return RunSummary(path, found.info, found.status, found.last_step, found.last_write_ns)


def find_runs(root: Path, limit: int | None = None) -> list[RunSummary]:
    """Runs below `root`, the newest first; links and hidden folders are not followed."""
    found = []
    for path in _run_folders(root):
        try:
            found.append(summarize_run(path))
        except (OSError, ValueError):  # not a run, or gone meanwhile
            continue
    found.sort(key=lambda summary: summary.info.created_ns, reverse=True)
    return found[:limit]


def _run_folders(root: Path) -> list[Path]:
    found: list[Path] = []
    level = [root]
    visited = 0
    for _ in range(MAX_LIST_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            visited += 1
            if visited > MAX_LISTED_FOLDERS:
                return found
            try:
                is_run, folders = _look(folder)
            except (OSError, ValueError):  # not ours to look into, or a name that no folder can have
                continue
            if is_run:
                found.append(folder)
            else:
                below += folders
        level = below
    return found


def _look(folder: Path) -> tuple[bool, list[Path]]:
    """Whether a folder is a run, and the folders below that may hold some."""
    if (folder / RUN_FILE).is_file():
        return True, []
    found, foreign = [], False
    for entry in entries(folder):
        foreign = foreign or entry.name in FOREIGN_NAMES
        skipped = entry.name.startswith(".") or entry.name in _SKIPPED
        if not skipped and entry.is_dir(follow_symlinks=False):
            found.append(Path(entry.path))
    return foreign and is_foreign(folder), found


def _newest(path: Path) -> tuple[list[SegmentFile], int]:
    """The newest segments of rows, the last one first, which may hold nothing yet; time of the last write."""
    newest: list[SegmentFile] = []
    written_ns = 0
    for _, directory in list_ranks(path):
        segments = list_segments(directory)
        for stream in segments.values():
            if stream:
                written_ns = max(written_ns, modified_ns(stream[-1].path))
        newest = newest or segments["stats"][: -_LOOKED_AT - 1 : -1]
    return newest, written_ns or modified_ns(path / RUN_FILE)


def _stamp(segment: SegmentFile) -> tuple[SegmentFile, int, int]:
    """A segment, and when and with which size it was written last."""
    try:
        facts = segment.path.lstat()
    except OSError:
        return segment, 0, 0
    return segment, facts.st_mtime_ns, facts.st_size


@lru_cache(_CACHED)
def _last_step(segment: SegmentFile, _modified_ns: int, _size: int) -> int:
    return _sealed_step(segment) if segment.sealed else _live_step(segment)


def _live_step(segment: SegmentFile) -> int:
    """The last step of a segment that is being written, or was when its training was killed; else -1."""
    try:
        batches = newest_batches(segment.path, SCHEMAS["stats"], _LAST_BATCHES)
        last = max((numbers_of(one["step"]).max(initial=-1) for one in batches), default=-1)
        kinds = {kind for one in batches for kind in one["kind"].unique().to_pylist()}
    except (OSError, ValueError, TypeError):
        return -1
    return -1 if not last and kinds <= {str(Kind.CHECK)} else int(last)


def _sealed_step(segment: SegmentFile) -> int:
    try:
        file = SealedFile(segment.path, "stats")
        last = int(file.array(STEPS_KEY, "<i8", 3)[:, 1].max(initial=-1))
        kinds = [] if last else [parse_key(described[:6]).kind for described in file.json(KEYS_KEY)]
    except (OSError, ValueError, TypeError, IndexError, KeyError, AttributeError):
        return -1
    return -1 if is_set_up(kinds) and not last else last


def is_set_up(kinds: Iterable[Kind]) -> bool:
    """Whether rows of these kinds tell of the set-up of a training only, not of a step."""
    return all(kind is Kind.CHECK for kind in kinds)
