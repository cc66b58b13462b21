"""The folder of recordings: recordings are let go when it becomes too large, scores and answers stay."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """Bytes of the files below a folder."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
