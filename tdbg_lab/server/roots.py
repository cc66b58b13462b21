"""Run roots: the only folders the server looks into, and the check that nothing leads out of them."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import AccessError, ConfigError, NotFoundError
from tdbg_lab.server.remote import RemoteRoot
from tdbg_lab.store.remote import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Entry", "Root", "entry", "make_roots", "require_inside", "require_no_way_out"]

OWN_FOLDERS = ("findings", "control")
"""Folders of a run directory, beside one ``rank-*`` for each rank."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder under which runs are served."""

    name: str
    """Unique among the roots, stable over restarts."""
    path: Path
    """Absolute, symbolic links resolved. Of a place on an object store: the folder of its mirrors."""
    remote: RemoteRoot | None = field(default=None, compare=False)
    """What keeps the mirrors up to date."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run directory that was found under a root."""

    id: str
    """First 16 hexadecimal digits of the SHA-256 of ``<root name>/<relative path>``."""
    root: Root
    relative: str
    """POSIX path relative to the root; ``"."`` for the root itself."""
    directory: Path


def make_roots(
    paths: Sequence[str], default: str, *, storage_options: Mapping[str, Any] | None = None
) -> tuple[Root, ...]:
    """Roots for configured folders; relative ones and ``~`` count from `default` and home.

    A root may be a place on an object store, such as ``s3://bucket/runs``.

    Raises
    ------
    ConfigError
        When a folder appears twice. A folder that does not exist yet is no error.
    MissingDependencyError
        When a root is on an object store and obstore is not installed.
    """
    roots: list[Root] = []
    for text in paths or [default]:
        remote = RemoteRoot(text, storage_options) if is_url(text) else None
        path = _resolved(remote.path if remote else Path(default, Path(text).expanduser()))
        if any(path == root.path for root in roots):
            raise ConfigError(f"The run root {text!r} is configured twice; name each folder once.")
        roots.append(Root(_unique(path.name or "root", [root.name for root in roots]), path, remote))
    return tuple(roots)


def _resolved(path: Path) -> Path:
    """Absolute, links followed; links that go round in circles are no error, but cannot be read."""
    return Path(os.path.realpath(path))


def _unique(name: str, taken: Sequence[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def entry(root: Root, relative: str) -> Entry:
    """The entry of a run directory; nothing is checked."""
    digest = hashlib.sha256(f"{root.name}/{relative}".encode("utf-8", "surrogateescape")).hexdigest()
    return Entry(digest[:16], root, relative, root.path / relative)


def require_inside(found: Entry) -> None:
    """Check that the run directory is one, and that no symbolic link lies on the way to it.

    Raises
    ------
    NotFoundError
        When the directory is gone.
    AccessError
        When the way leads over a symbolic link: it may end outside the root.
    """
    path = found.root.path
    for part in (".", *Path(found.relative).parts):
        path = path / part
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            raise NotFoundError(f"The run directory {found.relative!r} is gone.") from None
        if part == ".." or stat.S_ISLNK(mode):
            raise AccessError(f"The run directory {found.relative!r} leads outside the run roots.")
        if not stat.S_ISDIR(mode):
            raise NotFoundError(f"{found.relative!r} is not a run directory.")


def require_no_way_out(found: Entry) -> None:
    """Check that none of a run's own folders is a symbolic link.

    Files are the store's business: it opens regular files only.

    Raises
    ------
    AccessError
        When one is.
    """
    for folder in _own_folders(found.directory):
        if folder.is_symlink():
            raise AccessError(
                f"In the run {found.relative!r}, {folder.name!r} is a symbolic link, which may lead outside "
                "the run roots; replace it by the folder itself."
            )


def _own_folders(directory: Path) -> Iterator[Path]:
    try:
        names = [path.name for path in directory.iterdir()]
    except OSError:
        return
    for name in names:
        if name in OWN_FOLDERS or name.startswith("rank-"):
            yield directory / name
            yield directory / name / "raw"
