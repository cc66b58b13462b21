"""Runs in a directory, or on an object store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError
from tdbg_lab.run.reading import Run
from tdbg_lab.store.listing import RunSummary, find_runs
from tdbg_lab.store.remote import is_url, parse_url

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["list_runs", "open_run"]


def open_run(path: str | Path, *, storage_options: Mapping[str, Any] | None = None) -> Run:
    """The run in a directory or on an object store (``s3://``, ``gs://``, ``az://``), read once.

    Parameters
    ----------
    storage_options
        Of an object store, see `tdbg_lab.store.remote.options`.

    Raises
    ------
    NotFoundError
        If there is none.
    StoreError
        If an object store cannot be read.
    ConfigError
        If the place, the address or an option is wrong.
    """
    if not is_url(_place(path)):
        return Run(path)
    from tdbg_lab.store.remote.opening import open_mirror

    mirror = open_mirror(parse_url(path), storage_options)
    return Run(mirror.path, mirror=mirror)


def list_runs(
    root: str | Path, *, limit: int | None = None, storage_options: Mapping[str, Any] | None = None
) -> list[RunSummary]:
    """Runs below `root`, the newest first. Quick: reads each ``run.json`` and little else.

    Raises
    ------
    StoreError
        If an object store cannot be read.
    ConfigError
        If the address or an option is wrong.
    """
    if not is_url(_place(root)):
        return find_runs(Path(root), limit)
    from tdbg_lab.store.remote.catalog import find_remote_runs

    return find_remote_runs(parse_url(root), storage_options, limit)


def _place(path: Any) -> str | Path:
    """A path or an address.

    Raises
    ------
    ConfigError
        If it is something else.
    """
    if isinstance(path, str | Path):
        return path
    raise ConfigError(
        f"{path!r:.80} is no place of a run; give its directory, or its address on an object store."
    )
