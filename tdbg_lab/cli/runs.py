"""``tdbg runs``: which runs there are."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RunStatus

if TYPE_CHECKING:
    from tdbg_lab.run import RunSummary

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
    found = list_runs(root, limit=limit)
    if not found:
        click.echo(f"No runs below {root}. A training script makes one with tdbg_lab.attach(model, ...).")
        return
    rows = [
        [
            each.info.name,
            str(each.status),
            _last_step(each),
            moment(each.info.created_ns),
            each.info.framework or "-",
            ", ".join(each.info.tags) or "-",
            shlex.quote(each.url or str(each.path)),
        ]
        for each in found
    ]
    # The path stands last and whole, as another command takes it.
    click.echo(table(["NAME", "STATUS", "LAST STEP", "CREATED", "FRAMEWORK", "TAGS", "PATH"], rows))


def _last_step(run: RunSummary) -> str:
    """The last step; of a running run it stands in its live segment, which is small."""
    step = run.last_step
    if run.status is RunStatus.RUNNING and not run.url:
        from tdbg_lab.run import Run

        with contextlib.suppress(NotFoundError):  # deleted meanwhile
            step = Run(run.path).last_step
    return "-" if step < 0 else str(step)
