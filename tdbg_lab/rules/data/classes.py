"""Labels and predictions of the last recorded batches, as classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Mode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["CLASS_KINDS", "HOW_TO_RECORD", "MAX_CLASSES", "Classes", "class_names", "classes_of"]

CLASS_KINDS = (Kind.CUSTOM, Kind.INPUT, Kind.ACTIVATION)
"""Kinds that labels and predictions may have."""
MAX_CLASSES = 1000
HOW_TO_RECORD = (
    "No labels with predictions were recorded so far: handle.record('predictions', logits, labels=y), "
    "or give the XGBoost callback train= or validation=."
)
_ROUND = 1e-6


class Classes(NamedTuple):
    """Classes of the same samples."""

    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]
    """As many as labels; none where only labels were recorded."""
    mode: Mode

    def counts(self, n: int) -> NDArray[np.int64]:
        """Confusion: rows are labels, columns predictions. Shape ``(n, n)``."""
        found = np.zeros((n, n), np.int64)
        np.add.at(found, (self.labels, self.predictions), 1)
        return found

    @property
    def size(self) -> int:
        """Number of classes that occur: the largest one, plus one."""
        both = np.concatenate([self.labels, self.predictions])
        return int(both.max(initial=-1)) + 1


class Names(NamedTuple):
    """Names of the tensors that hold labels and predictions."""

    labels: str
    predictions: str


def class_names(run: RunView, labels_regex: str, predictions_regex: str) -> Names | None:
    """Find the tensors: predictions whose labels were recorded with them, or a tensor of labels besides.

    ``predicted_labels``, the classes of a boosted model, go before its probabilities.
    """
    found = _named(run, predictions_regex)
    found.sort(key=lambda name: not name.endswith("predicted_labels"))
    labels = [name for name in _named(run, labels_regex) if name not in found]
    if not found:
        return Names(labels[0], "") if labels else None
    return Names(labels[0] if labels else f"{found[0]}/labels", found[0])


def _named(run: RunView, regex: str) -> list[str]:
    """Tensors named like this; facts about losses, ``check/loss/.../labels``, are none."""
    return [key.name for key in run.tensors(regex=regex) if key.kind is not Kind.CHECK]


def classes_of(
    run: RunView,
    names: Names,
    *,
    samples: int,
    steps: int,
    argmax: bool | None = None,
    modes: tuple[Mode, ...] = (Mode.EVAL, Mode.TRAIN),
) -> Classes | None:
    """Gather classes of the last recorded steps, the checked one included, newest first.

    Parameters
    ----------
    run
        What was recorded.
    names
        Which tensors.
    samples
        Enough of them.
    steps
        Recorded steps to look back on.
    argmax
        Whether predictions are scores per class; None when they have two dimensions. Scores of one
        column or none are thresholded: at 0.5 within 0 and 1, else at 0.
    modes
        The first of them in which anything was recorded counts.

    Returns
    -------
    Classes or None
        None when nothing was recorded at the checked step, or when labels are no classes.
    """
    for mode in modes:
        found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        name = names.predictions or names.labels
        kinds = {key.kind for key in run.tensors(regex=None) if key.name == name}
        frames = [frame for kind in kinds for frame in run.frames(kind, steps, mode) if name in frame.index]
        if not frames or frames[-1].step != run.step:
            continue
        for frame in reversed(frames):
            pair = _pair(run, names, frame.step, mode, argmax=argmax)
            if pair is not None:
                found.append(pair)
            if sum(len(labels) for labels, _ in found) >= samples:
                break
        if found:
            labels, predictions = (np.concatenate(parts) for parts in zip(*found, strict=True))
            return Classes(labels, predictions, mode)
    return None


def _pair(
    run: RunView,
    names: Names,
    step: int,
    mode: Mode,
    *,
    argmax: bool | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    raw = run.raw(f"{names.predictions}/labels", step, mode) if names.predictions else None
    raw = run.raw(names.labels, step, mode) if raw is None else raw
    labels = None if raw is None else _whole(raw)
    if labels is None:
        return None
    if not names.predictions:
        return labels, np.zeros(0, np.int64)
    scores = run.raw(names.predictions, step, mode)
    predictions = None if scores is None else _predicted(scores, argmax=argmax)
    if predictions is None or len(predictions) != len(labels):
        return None
    return labels, predictions


def _predicted(scores: NDArray[np.float64], *, argmax: bool | None) -> NDArray[np.int64] | None:
    if not np.isfinite(scores).all():
        return None
    if argmax is not False and scores.ndim == 2 and scores.shape[1] > 1:
        return np.asarray(scores.argmax(axis=1), np.int64)
    flat = scores.reshape(-1)
    classes = _whole(flat)
    if classes is not None or argmax is False:
        return classes
    limit = 0.5 if flat.min(initial=0.0) >= 0 and flat.max(initial=0.0) <= 1 else 0.0
    return (flat > limit).astype(np.int64)


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Classes, or None for numbers that are none."""
    flat = values
    if values.ndim == 2 and values.shape[1] > 1:  # one hot
        if not (np.isin(values, (0, 1)).all() and (values.sum(axis=1) == 1).all()):
            return None
        flat = values.argmax(axis=1)
    flat = np.asarray(flat, np.float64).reshape(-1)
    if not len(flat) or not np.isfinite(flat).all() or np.abs(flat - np.round(flat)).max() > _ROUND:
        return None
    classes = np.round(flat).astype(np.int64)
    return classes if classes.min() >= 0 and classes.max() < MAX_CLASSES else None
