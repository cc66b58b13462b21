"""Replacing, removing and opening files that another process may have open, and having them on the disk.

Windows refuses that where other systems do not see a difficulty. Our readers have a file open for moments
only, so it is tried again for a while.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["patiently", "remove_file", "replace_file", "sync_file"]

OPEN_FILES_BLOCK: Final = os.name == "nt"
"""Whether a file that somebody has open cannot be replaced or removed."""
_PAUSES_S: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.3)
_NO_SYNC: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

T = TypeVar("T")


def replace_file(temporary: Path, target: Path) -> None:
    """Let a file that was written aside take the place of another one.

    Raises
    ------
    OSError
        If it cannot.
    """
    patiently(lambda: temporary.replace(target))


def sync_file(descriptor: int) -> None:
    """Have what was written on the disk; a file system in user space may not know how, and then that is that.

    Raises
    ------
    OSError
        If it could not be written.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def remove_file(path: Path) -> None:
    """Remove a file; one that is not there is no trouble.

    Raises
    ------
    OSError
        If it cannot be removed.
    """
    patiently(lambda: path.unlink(missing_ok=True))


def patiently(do: Callable[[], T], pauses_s: Sequence[float] = _PAUSES_S) -> T:
    """What `do` gives; on Windows it is called again when access is denied, once after each pause.

    Raises
    ------
    OSError
        What `do` raised in the end.
    """
    for pause_s in pauses_s if OPEN_FILES_BLOCK else ():
        try:
            return do()
        except PermissionError:
            time.sleep(pause_s)
    return do()
