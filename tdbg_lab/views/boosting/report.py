"""One HTML page about a boosted run, with the sections of its task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError
from tdbg_lab.run import Run, open_run
from tdbg_lab.views.boosting import figures
from tdbg_lab.views.boosting.samples import samples_of
from tdbg_lab.views.report import write_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plotly import graph_objects as go

    from tdbg_lab.views.boosting.samples import Sample

__all__ = ["write_xgboost_report"]

_KINDS = ("weight", "gain", "cover", "total_gain", "total_cover", "split")
_NAMES = {"weight": "how often they split", "gain": "gain of a split", "cover": "rows a split concerns"}


def write_xgboost_report(run: Run | str | Path, path: str | Path) -> Path:
    """Write a self-contained HTML page about a run of XGBoost or LightGBM; returns its path.

    Labels, loss and importances of features for every task; confusion matrix, scores and accuracy per class
    for classification, with a receiver operating characteristic for two classes; residuals and errors
    by label for regression. Sections without data are left out.

    Parameters
    ----------
    run
        A run, or its directory, recorded with `XGBoostCallback` or `LightGBMCallback`.
    path
        The file; written whole or not at all.

    Raises
    ------
    NotFoundError
        When there is no such run.
    ConfigError
        When nothing of boosted trees was recorded.
    StoreError
        When the file cannot be written.
    """
    run = run if isinstance(run, Run) else open_run(run)
    sections = [*_general(run), *_by_task(samples_of(run))]
    if not sections:
        raise ConfigError(
            f"{run.info.name!r} has nothing of boosted trees; expected a run recorded with XGBoostCallback "
            "or LightGBMCallback: give it train= or validation= as well."
        )
    return write_page(run, path, sections, title="report on boosted trees")


def _general(run: Run) -> Iterator[tuple[str, go.Figure]]:
    metrics = dict.fromkeys(
        key.name.rpartition("-")[2] for key in run.tensors(kind="loss") if "-" in key.name
    )
    for metric in metrics:
        yield f"Loss: {metric}", figures.loss_figure(run, f"-{metric}")
    for kind in _KINDS:
        figure = figures.importance_figure(run, kind)
        if figure is not None:
            yield f"Importance of features: {_NAMES.get(kind, kind.replace('_', ' '))}", figure


def _by_task(samples: list[Sample]) -> Iterator[tuple[str, go.Figure]]:
    if not samples:
        return
    last = samples[-1]
    yield "Labels", figures.labels_figure(last)
    if last.task == "regression":
        yield "Residuals", figures.residuals_figure(last)
        yield "Absolute error by label", figures.error_figure(samples)
        return
    yield "Confusion matrix", figures.confusion_figure(last)
    yield "Precision, recall, F1", figures.scores_figure(last)
    yield (
        "Accuracy of each class",
        figures.accuracy_figure([one for one in samples if one.classes is not None]),
    )
    curve = figures.roc_figure(last) if last.task == "binary" else None
    if curve is not None:
        yield "Receiver operating characteristic", curve
