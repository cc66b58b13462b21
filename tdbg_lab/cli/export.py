"""``tdbg export``: the statistics of a run as a table file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["command"]


@click.command("export")
@RUN
@click.option("--csv", "kind", flag_value="csv", help="Comma-separated text.")
@click.option("--parquet", "kind", flag_value="parquet", help="Apache Parquet.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Default: RUN.csv or .parquet."
)
@click.option("--regex", help="Only tensors whose name matches.")
@click.option("--mode", type=click.Choice(["train", "eval", "predict"]), help="Default: all modes.")
def command(run: str, kind: str | None, output: Path | None, regex: str | None, mode: str | None) -> None:
    """Write one row for each tensor and step of RUN: count, min, max, mean, std, ..."""
    kind = kind or (output.suffix.lstrip(".") if output else None)
    if kind not in {"csv", "parquet"}:
        raise ConfigError("Say in which format: --csv or --parquet.")
    opened = find_run(run)
    frame = opened.to_pandas(regex=regex, mode=mode)
    target = output or Path(f"{opened.path.name}.{kind}")
    _write(frame, target, kind)
    click.echo(f"{target}: {len(frame)} rows")


def _write(frame: pd.DataFrame, target: Path, kind: str) -> None:
    """Write whole or not at all."""
    partial = target.with_name(f".{target.name}.tmp")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if kind == "csv":
            frame.to_csv(partial, index=False)
        else:
            frame.to_parquet(partial, index=False)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
