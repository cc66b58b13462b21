"""Folders of ours on this machine, for runs of object stores: where they lie, and how much they may hold."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError, StoreError
from tdbg_lab.store.layout import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["byte_limit", "folder_sizes", "make_folder", "own_folder"]

log = logging.getLogger("tdbg_lab")

_DEFAULT_BYTES = 20 * 2**30


def own_folder(variable: str, name: str) -> Path:
    """The folder that an environment variable names, else one of this name in the user's cache.

    Raises
    ------
    ConfigError
        If it is in a home directory that there is not.
    """
    named = os.environ.get(variable)
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(named or f"{home}/tdbg-lab/{name}").expanduser().absolute()
    except RuntimeError:
        why = f"{variable} is {named!r}, and there is no such home directory"
        raise ConfigError(
            f"{why if named else 'This user has no home directory to keep files in'}: "
            f"set {variable if named else 'XDG_CACHE_HOME'} to a folder that can be written."
        ) from None


def make_folder(path: Path, variable: str) -> None:
    """Make a folder for files of ours, where another one could be named by an environment variable.

    Raises
    ------
    StoreError
        If no file can be made in it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise StoreError(
            f"Runs of object stores cannot be kept in {path}: {error.strerror or error}. "
            f"Set {variable} to a folder that can be written."
        ) from error


def byte_limit(variable: str) -> int:
    """How many bytes a folder may hold, by an environment variable: 20 GiB unless it says so."""
    text = os.environ.get(variable, "").strip()
    if text.isdecimal():
        return int(text)
    if text:
        log.warning(
            "%s is %r; expected a number of bytes. %d are taken.", variable, text[:40], _DEFAULT_BYTES
        )
    return _DEFAULT_BYTES


def folder_sizes(folder: Path) -> Iterator[int]:
    """Bytes of each file in a folder and below; links are not followed."""
    for entry in entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from folder_sizes(Path(entry.path))
        else:
            with contextlib.suppress(OSError):
                yield entry.stat(follow_symlinks=False).st_size
