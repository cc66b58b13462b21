"""The figures of the report on boosted trees: a function each, from samples or the run to a Plotly figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from tdbg_lab.errors import TdbgError
from tdbg_lab.records import Mode
from tdbg_lab.views.boosting.samples import confusion, roc, scores_of
from tdbg_lab.views.palette import GRID, SEQUENTIAL, pick
from tdbg_lab.views.style import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.run import Run
    from tdbg_lab.views.boosting.samples import Sample

__all__ = [
    "accuracy_figure",
    "confusion_figure",
    "error_figure",
    "importance_figure",
    "labels_figure",
    "loss_figure",
    "residuals_figure",
    "roc_figure",
    "scores_figure",
]

_TOP = 20
_LINES = 20
_BINS = 10


def _figure(traces: Sequence[go.BaseTraceType], x: str, y: str) -> go.Figure:
    axis = {"gridcolor": GRID, "zeroline": False}
    layout = {"margin": {"l": 60, "r": 20, "t": 20, "b": 50}, "height": 420}
    return go.Figure(traces, {**layout, "xaxis": {"title": x, **axis}, "yaxis": {"title": y, **axis}})


def labels_figure(sample: Sample) -> go.Figure:
    """Histogram of the true labels."""
    figure = _figure([go.Histogram(x=sample.labels, marker_color=pick(0))], "Label", "Rows")
    return describe(figure, f"True labels of {len(sample.labels)} sampled rows, {sample.mode} data.")


def loss_figure(run: Run, metric: str) -> go.Figure:
    """Loss of training and evaluation data over boosting rounds, with what it says about the fit."""
    lines = []
    for mode in (Mode.TRAIN, Mode.EVAL):
        for key in run.tensors(kind="loss"):
            series = run.scalars(key.name, mode=mode) if key.name.endswith(metric) else None
            if series is not None and len(series.steps):
                lines.append((key.name, mode, series))
    traces = [
        go.Scatter(
            x=one.steps,
            y=one.values,
            name=f"{name} ({mode})",
            line={"color": pick(place), "dash": "solid" if mode == Mode.TRAIN else "dash"},
        )
        for place, (name, mode, one) in enumerate(lines)
    ]
    values = {mode: one.values for _, mode, one in reversed(lines)}
    return describe(
        _figure(traces, "Boosting round", metric), _fit_advice(values.get(Mode.TRAIN), values.get(Mode.EVAL))
    )


def _fit_advice(train: np.ndarray | None, held: np.ndarray | None) -> str:
    if train is None or held is None or not len(held):
        return "Loss over boosting rounds. Give an evaluation set (evals=) to see over- and underfitting."
    best = int(np.nanargmin(held))
    rise = 100.0 * float(held[-1] - held[best]) / max(abs(float(held[best])), 1e-12)
    if rise > 5.0:
        return (
            f"Overfitting: the evaluation loss was best at round {best} and has risen by {rise:.0f} % since. "
            "Stop early, or lower max_depth and eta, raise min_child_weight, gamma, lambda or alpha."
        )
    if best >= len(held) - 2:
        return (
            "Underfitting, perhaps: the evaluation loss still falls in the last rounds. "
            "Train more rounds, or raise eta or max_depth."
        )
    return "The evaluation loss has settled near its best: neither over- nor underfitting is to be seen."


def importance_figure(run: Run, kind: str) -> go.Figure | None:
    """Importance of the features at the last saved round; None when it was not recorded."""
    name = f"feature_importance/{kind}"
    try:
        steps = run.raw_steps(name)
        values = np.asarray(run.tensor(name).value(steps[-1]), np.float64)
    except (TdbgError, IndexError):
        return None
    known = run.info.capture.get("features") if isinstance(run.info.capture, dict) else None
    names = (
        known
        if isinstance(known, list) and len(known) == len(values)
        else [f"f{i}" for i in range(len(values))]
    )
    top = np.argsort(values)[::-1][:_TOP][::-1]
    bars = go.Bar(x=values[top], y=[str(names[i])[:60] for i in top], orientation="h", marker_color=pick(0))
    figure = _figure([bars], f"Share of {kind}", "")
    figure.update_layout(margin_l=160, yaxis_type="category")
    return describe(
        figure, f"The {len(top)} most important of {len(values)} features by {kind}, round {steps[-1]}."
    )


def confusion_figure(sample: Sample) -> go.Figure:
    """Confusion matrix of the last saved round."""
    counts = confusion(sample)
    names = [str(one) for one in range(len(counts))]
    heat = go.Heatmap(
        z=counts,
        x=names,
        y=names,
        colorscale=list(SEQUENTIAL),
        text=counts if len(counts) <= _LINES else None,
        texttemplate="%{text}" if len(counts) <= _LINES else None,
    )
    figure = _figure([heat], "Predicted class", "True class")
    figure.update_layout(xaxis_type="category", yaxis={"type": "category", "autorange": "reversed"})
    share = 100.0 * np.trace(counts) / max(counts.sum(), 1)
    return describe(figure, f"{share:.1f} % of {counts.sum()} rows are right at round {sample.step}.")


def scores_figure(sample: Sample) -> go.Figure:
    """Micro, macro and weighted precision, recall and F1 as a table."""
    rows = scores_of(confusion(sample))
    columns = [[row[0] for row in rows], *([f"{row[i]:.4f}" for row in rows] for i in (1, 2, 3))]
    table = go.Table(
        header={"values": ["Average", "Precision", "Recall", "F1"], "fill_color": GRID},
        cells={"values": columns, "fill_color": "rgba(0,0,0,0)"},
    )
    figure = go.Figure([table], {"height": 160, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}})
    return describe(figure, f"Scores over all classes at round {sample.step}.")


def accuracy_figure(samples: Sequence[Sample]) -> go.Figure:
    """Share of each class that is right, over boosting rounds: the diagonal of the confusion matrix."""
    tables = [confusion(sample) for sample in samples]
    largest = np.argsort(tables[-1].sum(axis=1))[::-1][:_LINES]
    steps = [sample.step for sample in samples]
    traces = []
    for place, one in enumerate(sorted(largest)):
        values = [
            table[one, one] / max(table[one].sum(), 1) if one < len(table) else np.nan for table in tables
        ]
        traces.append(go.Scatter(x=steps, y=values, name=f"class {one}", line_color=pick(place)))
    figure = _figure(traces, "Boosting round", "Share of the class that is right")
    return describe(figure, f"Accuracy of {len(traces)} classes over boosting rounds.")


def roc_figure(sample: Sample) -> go.Figure | None:
    """Receiver operating characteristic of the last saved round; None with one class only."""
    found = roc(sample)
    if found is None:
        return None
    x, y, area = found
    traces = [
        go.Scatter(x=x, y=y, name="model", line_color=pick(0)),
        go.Scatter(x=[0, 1], y=[0, 1], name="chance", line={"color": pick(1), "dash": "dot"}),
    ]
    figure = _figure(traces, "False positive rate", "True positive rate")
    return describe(figure, f"Area under the curve {area:.4f} at round {sample.step}.")


def residuals_figure(sample: Sample) -> go.Figure:
    """Histogram of label minus prediction; should be centred at zero and without a skew."""
    residuals = sample.labels - sample.predictions.reshape(len(sample.labels), -1)[:, 0]
    std = float(residuals.std()) or 1.0
    skew = float((((residuals - residuals.mean()) / std) ** 3).mean())
    advice = " A skew says that features are missing that tell large labels apart." if abs(skew) > 1 else ""
    figure = _figure([go.Histogram(x=residuals, marker_color=pick(0))], "Label minus prediction", "Rows")
    return describe(
        figure, f"Mean {residuals.mean():.4g}, standard deviation {std:.4g}, skew {skew:.2f}.{advice}"
    )


def error_figure(samples: Sequence[Sample]) -> go.Figure:
    """Mean absolute error over boosting rounds, by the size of the label: ten bins."""
    edges = np.linspace(samples[-1].labels.min(), samples[-1].labels.max(), _BINS + 1)
    traces = []
    for one in range(_BINS):
        values = []
        for sample in samples:
            error = np.abs(sample.labels - sample.predictions.reshape(len(sample.labels), -1)[:, 0])
            inside = np.clip(np.searchsorted(edges, sample.labels, side="right") - 1, 0, _BINS - 1) == one
            values.append(float(error[inside].mean()) if inside.any() else np.nan)
        name = f"{edges[one]:.3g} to {edges[one + 1]:.3g}"
        traces.append(go.Scatter(x=[s.step for s in samples], y=values, name=name, line_color=pick(one)))
    return describe(
        _figure(traces, "Boosting round", "Mean absolute error"),
        "Absolute error of rows by their label, over boosting rounds.",
    )
