"""``tdbg run``: run a training script as it is, and capture what it trains."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from tdbg_lab.cli.launch import Launch
from tdbg_lab.cli.program import Program
from tdbg_lab.config.sagemaker import sagemaker_files

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command"]


def _distance(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a whole number nor auto.") from None


def _as_given(_context: click.Context, parameter: click.Parameter, rank: str | None) -> tuple[str, ...]:
    """What the launchers of DeepSpeed and (formerly) PyTorch add: the argument as it was, for the script."""
    return () if rank is None else (f"{parameter.opts[0]}={rank}",)


@click.command(
    "run",
    short_help="Run SCRIPT as python does, and capture what it trains.",
    context_settings={"allow_interspersed_args": False},
)
@click.option("--config", help="Settings of the capture: a JSON or YAML file.")
@click.option("--store", help="Directory of the run; by default runs/ and the time.")
@click.option(
    "--save-every", metavar="N", callback=_distance, help="Save every N-th step, or auto; by default 10."
)
@click.option(
    "--rules",
    default="default",
    show_default=True,
    help="Rules that look at the training: 'default', 'none', names with commas between, or a YAML file.",
)
@click.option("--name", help="Name of the run.")
@click.option("--tag", "tags", multiple=True, help="Tag of the run; may be given again.")
@click.option(
    "--trainings",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Capture the first N trainings of the script; a search over hyper-parameters has hundreds.",
)
@click.option("--no-profiler", is_flag=True, help="Do not sample CPU, GPU and memory.")
@click.option("--quiet", is_flag=True, help="Do not say at the end what was captured.")
@click.option("-m", "--module", is_flag=True, help="Run a module, as python -m does.")
@click.option("--local_rank", "ranks", callback=_as_given, hidden=True)
@click.option("--local-rank", "dashed_ranks", callback=_as_given, hidden=True)
@click.argument("program", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    program: str,
    arguments: Sequence[str],
    rules: str,
    trainings: int,
    *,
    ranks: tuple[str, ...],
    dashed_ranks: tuple[str, ...],
    module: bool,
    quiet: bool,
    **options: Any,
) -> Launch:
    """Run SCRIPT with its arguments, as python does, and capture what it trains.

    Nothing in the script changes. TDBG_DISABLED=1 in the environment turns the capture off. Without
    --config, the files of SageMaker Debugger are read that SMDEBUG_CONFIG_FILE_PATH and
    SMPROFILER_CONFIG_PATH name.
    """
    settings = {key: value for key, value in options.items() if value is not None}
    settings.setdefault("config", sagemaker_files(os.environ))
    settings["profiler"] = not settings.pop("no_profiler")
    as_it_is = rules in {"default", "none"} or rules.endswith((".yaml", ".yml", ".json"))
    settings["rules"] = rules if as_it_is else [one for one in rules.split(",") if one]
    arguments = (
        *ranks,
        *dashed_ranks,
        *arguments,
    )  # a launcher means the script, and tells what it starts first
    return Launch(Program(program, tuple(arguments), module), settings, trainings, quiet)
