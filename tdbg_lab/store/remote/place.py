"""Where mirrors of runs lie on this machine, and how much they may hold."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.store.layout import entries
from tdbg_lab.store.remote.endpoint import endpoint
from tdbg_lab.store.remote.own_folders import byte_limit, folder_sizes, own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["LOCK", "MIRROR_VARIABLE", "SIZE_VARIABLE", "make_room", "mirror_path"]

MIRROR_VARIABLE: Final = "TDBG_MIRROR"
SIZE_VARIABLE: Final = "TDBG_MIRROR_BYTES"
LOCK: Final = ".mirror"
"""Lock of the process that brings a mirror up to date; its age is the time of the last look."""
_IN_USE_S: Final = 3600.0
_MAX_DEPTH = 12


def mirror_root() -> Path:
    """All mirrors: ``TDBG_MIRROR``, else a folder in the user's cache."""
    return own_folder(MIRROR_VARIABLE, "mirror")


def mirror_path(url: StoreUrl, options: Mapping[str, Any]) -> Path:
    """The mirror of a place; the same for all processes that read it with the same endpoint."""
    where = endpoint(options)
    service = f"{url.scheme}-{hashlib.sha256(where.encode()).hexdigest()[:8]}" if where else url.scheme
    return mirror_root().joinpath(service, url.bucket, *url.path.split("/") if url.path else ())


def make_room(keep: Path) -> None:
    """Remove mirrors nobody looked at for longest, until all of them are within their bound.

    `keep` stays, and so does what was looked at within the last hour.
    """
    limit = byte_limit(SIZE_VARIABLE)
    mirrors = sorted(_mirrors(mirror_root(), 0), key=_looked_at_s)
    sizes = {path: sum(folder_sizes(path)) for path in mirrors}
    total = sum(sizes.values())
    for path in mirrors:
        if total <= limit:
            return
        if path != keep and time.time() - _looked_at_s(path) > _IN_USE_S:
            shutil.rmtree(path, ignore_errors=True)
            total -= sizes[path]


def _mirrors(folder: Path, depth: int) -> Iterator[Path]:
    for entry in entries(folder):
        if depth < _MAX_DEPTH and entry.is_dir(follow_symlinks=False):
            path = Path(entry.path)
            if (path / LOCK).is_file():
                yield path
            else:
                yield from _mirrors(path, depth + 1)


def _looked_at_s(path: Path) -> float:
    with contextlib.suppress(OSError):
        return (path / LOCK).stat().st_mtime
    return 0.0
