"""Labels and predictions of a boosted run, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import TdbgError
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.run import Run

__all__ = ["MAX_CLASSES", "Sample", "confusion", "roc", "samples_of", "scores_of"]

MAX_CLASSES = 200


@dataclass(frozen=True)
class Sample:
    """What was predicted for the sampled rows at one saved round."""

    step: int
    mode: Mode
    labels: NDArray[np.float64]
    """Shape ``(N,)``."""
    predictions: NDArray[np.float64]
    """Values, probabilities or scores; shape ``(N,)`` or ``(N, classes)``."""
    classes: NDArray[np.int64] | None
    """Predicted classes, shape ``(N,)``; None for a regression."""

    @property
    def task(self) -> str:
        """``binary``, ``multiclass`` or ``regression``."""
        if self.classes is None:
            return "regression"
        return "binary" if self.size <= 2 else "multiclass"

    @property
    def size(self) -> int:
        """Number of classes: the largest that occurs, plus one."""
        if self.classes is None:
            return 0
        return int(max(self.labels.max(initial=0), self.classes.max(initial=0))) + 1


def samples_of(run: Run) -> list[Sample]:
    """Sampled rows of every saved round, oldest first: of the validation data where there are any."""
    for mode in (Mode.EVAL, Mode.TRAIN):
        if "predictions" not in run.tensor_names():
            break
        steps = run.raw_steps("predictions", mode=mode)
        found = [one for step in steps if (one := _sample(run, step, mode)) is not None]
        if found:
            return found
    return []


def _sample(run: Run, step: int, mode: Mode) -> Sample | None:
    labels, predictions = _value(run, "labels", step, mode), _value(run, "predictions", step, mode)
    if labels is None or predictions is None or len(labels) != len(predictions) or not len(labels):
        return None
    classes = _value(run, "predicted_labels", step, mode)
    labels = labels.reshape(len(labels), -1)[:, 0].astype(np.float64)
    if not np.isfinite(labels).all():
        return None
    whole = classes is not None and bool((labels >= 0).all()) and labels.max() < MAX_CLASSES
    chosen = classes.reshape(-1).astype(np.int64) if classes is not None and whole else None
    if chosen is not None and (len(chosen) != len(labels) or chosen.min() < 0 or chosen.max() >= MAX_CLASSES):
        chosen = None
    return Sample(step, mode, labels, predictions.astype(np.float64), chosen)


def _value(run: Run, name: str, step: int, mode: Mode) -> NDArray[Any] | None:
    try:
        return np.asarray(run.tensor(name).value(step, mode=mode))
    except TdbgError:
        return None


def confusion(sample: Sample) -> NDArray[np.int64]:
    """How often each class (row) was predicted as each (column), shape ``(classes, classes)``."""
    counts = np.zeros((sample.size, sample.size), np.int64)
    if sample.classes is not None:
        np.add.at(counts, (sample.labels.astype(np.int64), sample.classes), 1)
    return counts


def scores_of(counts: NDArray[np.int64]) -> list[tuple[str, float, float, float]]:
    """Precision, recall and F1: micro, macro and weighted by the number of labels."""
    right, labelled, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    precision = right / np.maximum(predicted, 1)
    recall = right / np.maximum(labelled, 1)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    total = max(int(counts.sum()), 1)
    micro = float(right.sum() / total)
    there = labelled + predicted > 0
    weights = labelled / total
    measures = (precision, recall, f1)
    macro = [float(one[there].mean()) for one in measures]
    weighted = [float((one * weights).sum()) for one in measures]
    return [("micro", micro, micro, micro), ("macro", *_three(macro)), ("weighted", *_three(weighted))]


def _three(values: list[float]) -> tuple[float, float, float]:
    first, second, third = values
    return first, second, third


def roc(sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64], float] | None:
    """False and true positive rates over all thresholds, and the area below; None with one class only."""
    scores = sample.predictions if sample.predictions.ndim == 1 else sample.predictions[:, -1]
    truth = sample.labels > 0
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        return None
    order = np.argsort(-scores, kind="stable")
    last = np.r_[np.flatnonzero(np.diff(scores[order])), len(scores) - 1]  # equal scores go together
    hits = np.cumsum(truth[order])[last] / positive
    alarms = np.cumsum(~truth[order])[last] / negative
    x, y = np.r_[0.0, alarms], np.r_[0.0, hits]
    return x, y, float((np.diff(x) * (y[1:] + y[:-1])).sum() / 2.0)
