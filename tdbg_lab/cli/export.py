"""``tdbg export``: a run in the format of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.cli.progress import shown
from tdbg_lab.errors import ConfigError

__all__ = ["command"]

FORMATS = ("csv", "parquet", "tensorboard", "chrome", "safetensors")


@click.command("export", short_help="Write RUN in the format of another tool.")
@RUN
@click.argument("out", required=False, type=click.Path(path_type=Path))
@click.option("--to", "kind", type=click.Choice(FORMATS), help="Format; else by the ending of OUT.")
@click.option("--csv", "kind", flag_value="csv", help="The same as --to csv.")
@click.option("--parquet", "kind", flag_value="parquet", help="The same as --to parquet.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The same as OUT.")
@click.option("--regex", help="Only tensors whose name matches.")
@click.option("--mode", type=click.Choice(["train", "eval", "predict"]), help="Default: all modes.")
@click.option("--force", is_flag=True, help="Replace what is there.")
def command(  # noqa: PLR0917 - click passes them by name
    run: str,
    out: Path | None,
    kind: str | None,
    output: Path | None,
    regex: str | None,
    mode: str | None,
    force: bool,  # noqa: FBT001 - click's way
) -> None:
    """Write RUN to OUT (by default a file or folder here, named like the run).

    \b
    csv, parquet   one row for each tensor and step: value, count, min, max, mean, ...
    tensorboard    a folder of event files: scalars and histograms
    chrome         a trace for Perfetto: phases, samples of the machine, findings
    safetensors    a folder with a file of raw values for each step
    """  # noqa: D301 - \b keeps click from filling the lines
    from tdbg_lab.exchange import export

    target = out or output
    kind = kind or (target.suffix.lstrip(".") if target else None)
    if kind not in FORMATS:
        raise ConfigError(f"Say in which format: --to {', '.join(FORMATS)}.")
    opened = find_run(run)
    with shown(f"Writing {kind}") as progress:
        written = export(opened, to=kind, path=target, regex=regex, mode=mode, force=force, progress=progress)
    click.echo(str(written))
