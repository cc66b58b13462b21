"""Which run is meant on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tdbg_lab.errors import NotFoundError

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["RUN", "find_run"]

RUN = click.argument("run", metavar="RUN")
"""A run's directory or address, or the name of a run below the current directory."""


def find_run(text: str) -> Run:
    """The run in directory or at address `text`, else the newest of that name below the current directory.

    Raises
    ------
    NotFoundError
        When there is none.
    """
    from tdbg_lab.run import list_runs, open_run
    from tdbg_lab.store.remote import is_url
    from tdbg_lab.store.source import is_run

    if is_url(text) or is_run(Path(text)):
        return open_run(text)
    for summary in [] if Path(text).is_absolute() else list_runs(Path.cwd()):
        if text in {summary.info.name, summary.path.name}:  # a name may hold a slash, too
            return open_run(summary.path)
    if Path(text).is_absolute() or "/" in text:
        raise NotFoundError(f"There is no run in {text!r}: a run directory holds a run.json.")
    raise NotFoundError(
        f"There is no run {text!r}: give a run's directory, or a name that `tdbg runs` shows here."
    )
