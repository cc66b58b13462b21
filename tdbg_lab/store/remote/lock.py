"""A lock between processes that ends with the process that holds it, however that ends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tdbg_lab.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FileLock"]

_NO_LOCKS = (
    "Where tdbg-lab keeps runs of object stores, files cannot be locked: name a folder on a disk of this "
    "machine in the variables TDBG_SPOOL and TDBG_MIRROR."
)


class FileLock:
    """A lock on a file, not waited for. Not shared by threads of one process, nor by forked children."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor >= 0

    def acquire(self) -> bool:
        """Take the lock; False when another holds it.

        Raises
        ------
        OSError
            If the file cannot be made.
        StoreError
            If it lies where files cannot be locked.
        """
        if self.held:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if _try(descriptor):
                self._descriptor = descriptor
        finally:
            if not self.held:
                os.close(descriptor)
        return self.held

    def release(self) -> None:
        """Give it back; twice does no harm."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


if os.name == "nt":
    import msvcrt

    def _try(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:  # Lustre and NFS may be mounted without locks
            raise StoreError(_NO_LOCKS) from error
        return True
