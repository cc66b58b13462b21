"""A file that appears whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tdbg_lab.errors import StoreError
from tdbg_lab.store.file_moves import replace_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_whole"]


def write_whole(target: Path, text: str) -> Path:
    """Write a report, in UTF-8, and the folders it stands in; returns its path.

    Raises
    ------
    StoreError
        When the file cannot be written.
    """
    if target.is_dir():  # the empty path is one, too, and no file can lie beside it
        raise StoreError(f"{target} is a directory; give the name of a file.")
    partial = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", errors="replace")  # half a character is none
        replace_file(partial, target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(f"The report cannot be written to {target}: {error.strerror}.") from error
    return target
