"""Where an export goes: nothing that is there is lost, and a file is there whole or not at all."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConflictError, StoreError
from tdbg_lab.store.file_moves import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["claim_file", "claim_folder"]

_HOW = "choose another path, or say force (--force on the command line)"


@contextlib.contextmanager
def claim_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well.

    Raises
    ------
    ConflictError
        If `path` exists and not `force`.
    StoreError
        If it cannot be written.
    """
    if path.is_dir():
        raise ConflictError(f"{path} is a directory; give the name of a file.")
    if path.exists() and not path.is_file():
        raise ConflictError(f"{path} is a device or a pipe; give the name of a file.")
    if path.exists() and not force:
        raise ConflictError(f"{path} exists; {_HOW}.")
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        replace_file(partial, path)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def claim_folder(path: Path, *, force: bool) -> Path:
    """A folder to write into; with `force` files of the same names are replaced, others stay.

    Raises
    ------
    ConflictError
        If it is a file, or holds something and not `force`.
    StoreError
        If it cannot be made.
    """
    if path.exists() and not path.is_dir():
        raise ConflictError(f"{path} is a file; give the name of a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = any(path.iterdir())
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    if occupied and not force:
        raise ConflictError(f"{path} is not empty; {_HOW}.")
    return path
