"""Find run directories below a root: breadth first, bounded, never over a symbolic link."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.store.source import FOREIGN_NAMES, is_foreign

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.server.roots import Root

__all__ = ["SKIPPED", "Scan", "scan"]

SKIPPED = frozenset(
    {"__pycache__", "bower_components", "labextension", "node_modules", "site-packages", "venv"}
)
"""Folders that hold many files and no runs. Hidden folders are skipped too."""

SYSTEM = frozenset({"/dev", "/proc", "/sys"})
"""Folders of the operating system, met when a root is ``/``."""

MAX_FOLDERS = 20_000
"""Folders visited in one scan of one root."""

RUN_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class Scan:
    """What one look at a root found."""

    runs: tuple[str, ...]
    """POSIX paths relative to the root, nearest to it first, the last by name before others."""
    folders: tuple[Path, ...]
    """Visited folders that are no runs, nearest to the root first: where new runs will appear."""
    truncated: bool
    """Whether a bound was hit and runs may be missing."""


def scan(root: Root, *, depth: int, max_runs: int) -> Scan:
    """Look for runs (a ``run.json``, or a store of SageMaker Debugger) at most `depth` levels below `root`.

    Runs are not searched for further runs. Folders that cannot be read are left out.
    """
    runs: list[str] = []
    folders: list[Path] = []
    queue: deque[tuple[Path, str, int]] = deque([(root.path, "", 0)])
    while queue:
        if len(runs) >= max_runs or len(folders) >= MAX_FOLDERS:
            return Scan(tuple(runs), tuple(folders), truncated=True)
        folder, relative, level = queue.popleft()
        found = None if str(folder) in SYSTEM else _look(folder)
        if found is None:
            continue
        is_run, names = found
        if is_run:
            runs.append(relative or ".")
            continue
        folders.append(folder)
        if level < depth:
            prefix = f"{relative}/" if relative else ""
            queue.extend((folder / name, prefix + name, level + 1) for name in names)
    return Scan(tuple(runs), tuple(folders), truncated=False)


def _look(folder: Path) -> tuple[bool, list[str]] | None:
    """Whether a folder is a run, and its subfolders worth visiting; None if it cannot be read."""
    names: list[str] = []
    foreign = False
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                if each.name == RUN_FILE and each.is_file(follow_symlinks=False):
                    return True, []
                foreign = foreign or each.name in FOREIGN_NAMES
                if _worth(each.name) and each.is_dir(follow_symlinks=False):
                    names.append(each.name)
        if foreign and is_foreign(folder):
            return True, []
    except OSError:
        return None
    # Names hold a date or a number: where a bound is hit, the latest are within it.
    return False, sorted(names, reverse=True)


def _worth(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED
