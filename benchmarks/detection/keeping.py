"""The folder of recordings: recordings are let go when it becomes too large, scores and answers stay."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

__all__ = ["trim"]


def trim(folder: Path, most_mb: float) -> None:
    """Drop recordings, the oldest first, until those left are small enough.

    One that is still needed (rules were changed) is made again.
    """
    recorded = sorted(folder.glob("runs/*/facts.json"), key=lambda path: path.stat().st_mtime)
    sizes = {one.parent / "run": _size(one.parent / "run") for one in recorded}
    total = sum(sizes.values())
    for run, size in sizes.items():
        if total <= most_mb * 1e6:
            break
        shutil.rmtree(run, ignore_errors=True)
        total -= size


def _size(folder: Path) -> int:
    """Bytes of the files below a folder; what is left of a training may still write and remove some."""
    size = 0
    for directory, _, files in os.walk(folder):  # passes over directories that vanish meanwhile
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                size += Path(directory, name).stat().st_size
    return size
