"""``tdbg import``: what another tool recorded, as a run."""

from __future__ import annotations

from pathlib import Path

import click

from tdbg_lab.cli.progress import shown

__all__ = ["command"]


@click.command("import", short_help="Make a run of what another tool recorded.")
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("store", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    type=click.Choice(["tensorboard", "trace"]),
    help="Default: by the names of the files.",
)
@click.option("--name", help="Name of the run; by default that of PATH.")
def command(path: Path, store: Path | None, source: str | None, name: str | None) -> None:
    """Make a run of the file or folder PATH, in directory STORE (by default runs/<name of PATH>).

    \b
    tensorboard    event files: scalars and histograms
    trace          traces of torch.profiler (.json, .json.gz) and other Chrome traces
    """  # noqa: D301 - \b keeps click from filling the lines
    from tdbg_lab.exchange import import_run

    with shown("Reading") as progress:
        run = import_run(path, source=source, store=store, name=name, progress=progress)
    click.echo(str(run.path))
    click.echo(run.info.notes)
