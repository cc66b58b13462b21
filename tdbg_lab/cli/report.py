"""``tdbg report``: one HTML page about a run."""

from __future__ import annotations

from pathlib import Path

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.cli.progress import shown

__all__ = ["command"]


@click.command("report")
@RUN
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: RUN-report.html. With the ending .ipynb it is a notebook.",
)
@click.option("--notebook", is_flag=True, help="Write a notebook instead of a page: RUN-report.ipynb.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--xgboost", "boosted", is_flag=True, help="The report on boosted trees (XGBoost, LightGBM).")
def command(run: str, output: Path | None, *, notebook: bool, show: bool, boosted: bool) -> None:
    """Write a self-contained HTML page about RUN, or a notebook."""
    from tdbg_lab.views.boosting import write_xgboost_report
    from tdbg_lab.views.report import report_file, write_report

    wanted = "ipynb" if notebook else "html"
    if output is not None and notebook and output.suffix != ".ipynb":
        raise click.UsageError(f"--notebook writes a notebook: {output} must end in .ipynb.")
    notebook = notebook or (output is not None and output.suffix == ".ipynb")
    if boosted and notebook:
        raise click.UsageError("--xgboost writes a page only: leave --notebook out, end --output in .html.")
    opened = find_run(run)
    target = output or report_file(opened.path, wanted)
    if boosted:
        target = write_xgboost_report(opened, target)
    else:
        with shown("Writing the report") as progress:
            target = write_report(opened, target, progress=progress)
    click.echo(str(target))
    if show:
        click.launch(target.resolve().as_uri())
