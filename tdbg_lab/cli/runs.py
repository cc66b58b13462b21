"""``tdbg runs``: which runs there are."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("runs")
@click.argument("root", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="The newest ones only.")
def command(root: Path, limit: int) -> None:
    """List the runs below ROOT (the current directory), newest first."""
    from tdbg_lab.cli.table import moment, table
    from tdbg_lab.run import list_runs

    found = list_runs(root, limit=limit)
    if not found:
        click.echo(f"No runs below {root}. A training script makes one with tdbg_lab.attach(model, ...).")
        return
    base = root.resolve()
    rows = [
        [
            each.info.name,
            str(each.status),
            "-" if each.last_step < 0 else str(each.last_step),
            moment(each.info.created_ns),
            each.info.framework or "-",
            ", ".join(each.info.tags) or "-",
            _relative(each.path, base),
        ]
        for each in found
    ]
    click.echo(table(["NAME", "STATUS", "LAST STEP", "CREATED", "FRAMEWORK", "TAGS", "PATH"], rows))


def _relative(path: Path, base: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(base)) if resolved.is_relative_to(base) else str(path)
