"""MLflow: findings and figures on its active run."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

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

__all__ = ["log_to_mlflow"]

_METRICS_AT_ONCE = 500
_NOT_ALLOWED = re.compile(r"[^\w\-. /:]")


def log_to_mlflow(
    run: Run | str | Path,
    *,
    views: Sequence[str] = ("scalars", "overview"),
    scalars: str | None = None,
) -> str:
    """Log the findings of a run, and figures, to the active run of MLflow.

    Logged are the metrics ``tdbg/findings/<severity>``, the tag ``tdbg.run``, and the artifacts
    ``tdbg/findings.json`` and ``tdbg/<view>.html``.

    Parameters
    ----------
    run
        A run, or its directory.
    views
        The views whose figures are logged.
    scalars
        Numbers whose name matches this expression are logged too, with their steps; None for none.

    Returns
    -------
    str
        Id of MLflow's run.

    Raises
    ------
    MissingDependencyError
        MLflow is not installed.
    ConflictError
        MLflow has no active run.
    """
    try:
        import mlflow
    except ImportError as error:
        raise MissingDependencyError("MLflow is not installed; pip install mlflow-skinny.") from error
    active = mlflow.active_run()
    if active is None:
        raise ConflictError("MLflow has no active run; call this within `with mlflow.start_run():`.")
    opened = as_run(run)
    mlflow.set_tags(
        {"tdbg.run": opened.info.name, "tdbg.id": opened.info.id, "tdbg.status": str(opened.status)}
    )
    mlflow.log_metrics({name: float(value) for name, value in counts(opened).items()})
    rows = [dict(zip(FINDING_COLUMNS, row, strict=True)) for row in finding_rows(opened)]
    mlflow.log_dict({"findings": rows}, "tdbg/findings.json")
    for name, figure in figures_of(opened, views):
        mlflow.log_text(figure.to_html(include_plotlyjs="cdn"), f"tdbg/{name}.html")
    _log_scalars(mlflow, active.info.run_id, opened, scalars)
    return str(active.info.run_id)


def _log_scalars(mlflow: Any, run_id: str, run: Run, regex: str | None) -> None:
    client = mlflow.MlflowClient()
    waiting = []
    taken = set(client.get_run(run_id).data.metrics)
    places: dict[str, str] = {}
    for name, step, time_ns, value in scalars_of(run, regex):
        if math.isfinite(value):
            if name not in places:
                places[name] = _place(_NOT_ALLOWED.sub("_", name), taken)
                taken.add(places[name])
            waiting.append(mlflow.entities.Metric(places[name], value, time_ns // 10**6, step))
        if len(waiting) >= _METRICS_AT_ONCE:
            client.log_batch(run_id, metrics=waiting)
            waiting = []
    if waiting:
        client.log_batch(run_id, metrics=waiting)


def _place(name: str, taken: set[str]) -> str:
    """Name of a metric: ``loss/mse`` is ``loss.mse`` beside ``loss``, or that one is ``loss.value``.

    In a folder of MLflow's each metric is a file, and one cannot also be the folder of others.
    """
    parts = name.split("/")
    for n in range(1, len(parts)):
        if "/".join(parts[:n]) in taken:
            return f"{'/'.join(parts[:n])}.{'.'.join(parts[n:])}"
    if any(other.startswith(f"{name}/") for other in taken):
        return f"{name}.value"
    return name
