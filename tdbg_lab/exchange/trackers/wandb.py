"""Weights & Biases: findings and figures on its active run."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConflictError, MissingDependencyError
from tdbg_lab.exchange.trackers.content import (
    FINDING_COLUMNS,
    as_run,
    counts,
    figures_of,
    finding_rows,
    scalars_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tdbg_lab.run import Run

__all__ = ["log_to_wandb"]


def log_to_wandb(
    run: Run | str | Path,
    *,
    views: Sequence[str] = ("scalars", "overview"),
    scalars: str | None = None,
) -> str:
    """Log the findings of a run, and figures, to the active run of Weights & Biases.

    Logged are a table ``tdbg/findings``, the summary ``tdbg/findings/<severity>``, and the figures
    ``tdbg/<view>``.

    Parameters
    ----------
    run
        A run, or its directory.
    views
        The views whose figures are logged.
    scalars
        Numbers whose name matches this expression are logged too, over ``tdbg/step``; None for none.

    Returns
    -------
    str
        Id of the run of Weights & Biases.

    Raises
    ------
    MissingDependencyError
        wandb is not installed.
    ConflictError
        wandb has no active run.
    """
    try:
        import wandb
    except ImportError as error:
        raise MissingDependencyError("Weights & Biases is not installed; pip install wandb.") from error
    active = wandb.run
    if active is None:
        raise ConflictError("Weights & Biases has no active run; call wandb.init() first.")
    opened = as_run(run)
    if scalars is not None:
        active.define_metric("tdbg/step", hidden=True)
        active.define_metric("tdbg/*", step_metric="tdbg/step")
        found = sorted((step, f"tdbg/{name}", value) for name, step, _, value in scalars_of(opened, scalars))
        for step, group in groupby(found, key=lambda one: one[0]):
            active.log({"tdbg/step": step, **{name: value for _, name, value in group}})
    shown = {f"tdbg/{name}": wandb.Plotly(figure) for name, figure in figures_of(opened, views)}
    table = wandb.Table(columns=list(FINDING_COLUMNS), data=finding_rows(opened))
    active.log({"tdbg/findings": table, **shown})
    active.summary.update({**counts(opened), "tdbg/run": opened.info.name})
    return str(active.id)
