"""``tdbg runs``: which runs there are."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from tdbg_lab.errors import NotFoundError, StoreError

__all__ = ["command"]


@click.command("runs")
@click.argument("root", default=".")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="The newest ones only.")
def command(root: str, limit: int) -> None:
    """List the runs below ROOT (the current directory), newest first.

    ROOT may be a place on an object store, such as s3://bucket/runs.
    """
    from tdbg_lab.cli.table import moment, table
    from tdbg_lab.run import list_runs
    from tdbg_lab.store.remote import is_url

    if not is_url(root) and not Path(root).is_dir():
        raise NotFoundError(f"The folder {root!r} does not exist.")
    if not is_url(root) and not os.access(root, os.R_OK | os.X_OK):
        raise StoreError(f"The folder {root!r} may not be read by this user: ask its owner to allow it.")
    found = list_runs(root, limit=limit + 1)
    if not found:
        click.echo(f"No runs below {root}. A training script makes one with tdbg_lab.attach(model, ...).")
        return
    rows = [
        [
            each.info.name,
            str(each.status),
            "-" if each.last_step < 0 else str(each.last_step),
            moment(each.info.created_ns),
            each.info.framework or "-",
            ", ".join(each.info.tags) or "-",
            shlex.quote(each.url or str(each.path)),
        ]
        for each in found[:limit]
    ]
    # The path stands last and whole, as another command takes it.
    click.echo(table(["NAME", "STATUS", "LAST STEP", "CREATED", "FRAMEWORK", "TAGS", "PATH"], rows))
    if len(found) > limit:
        click.echo(f"There are more: these are the newest {limit}; --limit N shows N.", err=True)
