"""Facts about what a loss compares: predictions and labels, as numbers, whatever framework they come from."""

from __future__ import annotations

from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.effective_rank import effective_rank
from tdbg_lab.records import LossKind
from tdbg_lab.stats import summarize
from tdbg_lab.stats.scores import class_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["facts_of", "rows_kept", "spread_over"]

_MAX_ELEMENTS = 131_072
_LEAST_SAMPLES = 4
_MAX_NEIGHBOURS = 128
_MIDDLE = {LossKind.YES_LOGITS: 0.0, LossKind.YES_PROBABILITIES: 0.5}


def facts_of(
    x: NDArray[Any],
    y: NDArray[Any],
    kind: LossKind,
    *,
    same: bool,
    ignored: float | None = None,
    whole: bool = False,
) -> dict[str, float]:
    """Facts about predictions and labels.

    ``prediction``, ``target``, ``row_sum`` and ``row_logsumexp`` (over the classes), and of whole batches
    ``batch_sum`` (over the samples), have their least and largest value (``target_min``, ...), root mean
    square (``_size``), share of zeros (``_zeros``) and a count of values that are not finite (``_broken``).
    ``spread`` is the largest standard deviation over the batch of one output, ``hits`` the share of right
    predictions (``correlation``, for numbers), ``chance`` the share that would be right if they had nothing
    to do with the labels (for yes and no in several columns: with the labels of their column; for rows of
    numbers with a class each, as embeddings are in metric learning, both are of the nearest other row's
    class among the first 128), ``majority`` the share of the commonest label, ``rest`` the number of samples
    that have another one and ``rest_hits`` the share of those that is right (where each sample has one
    label), ``labels`` how many different ones there are, ``entropy`` theirs (nats, what a cross-entropy is
    when the inputs tell nothing), ``classes`` the outputs for each sample, ``kind`` the number of a
    `LossKind`. Of rows of numbers for a loss of the program's own, ``rank`` is the `effective_rank`
    (``target_rank`` where `y` is of their shape: the other view of a pair, or what they are to become).

    Parameters
    ----------
    x
        Predictions, ``(samples, classes, ...)`` or ``(samples, ...)``; see `rows_kept` for how many.
    y
        Labels: numbers of classes ``(samples, ...)``, or of the shape of `x`.
    same
        Whether each row of `y` belongs to a row of `x`.
    ignored
        Number of the class that does not count.
    whole
        Whether `x` holds all samples of the batch.
    """
    classes = kind.of_classes
    numbers = {"kind": float(kind), "samples": float(len(x))}
    if classes and same and len(x) > 1 and (scores := class_scores(x, y, ignored)) is not None:
        numbers["classes"] = float(x.shape[1])
        return numbers | {name: one for name, one in scores.items() if whole or "batch_sum" not in name}
    rows = {"prediction": x, "target": y}
    with np.errstate(all="ignore"):
        if classes and x.ndim > 1:
            rows |= {"row_sum": x.sum(1), "row_logsumexp": _logsumexp(x)}
            numbers["classes"] = float(x.shape[1])
        elif x.ndim > 1:
            rows["row_sum"] = x.sum(-1)
            if kind is LossKind.YES_LOGITS and x.ndim == 2 and x.shape[1] > 1:
                rows["row_logsumexp"] = _logsumexp(x)
            numbers["classes"] = float(x.shape[-1])
        if len(x) > 1:
            numbers["spread"] = float(x.std(0).max())
        if kind is LossKind.OTHER and x.ndim == 2:
            numbers |= _ranks(x, y)
        if whole and (classes or kind.of_yes_or_no):
            rows["batch_sum"] = np.atleast_1d(x.sum(0))
        if same:
            numbers |= _agreement(x, y, kind, ignored)
    return numbers | _described(rows)


def _ranks(x: NDArray[Any], y: NDArray[Any]) -> dict[str, float]:
    """Effective ranks, where they say something."""
    rows = {"rank": x, "target_rank": y} if y.shape == x.shape else {"rank": x}
    return {name: rank for name, one in rows.items() if (rank := effective_rank(one)) is not None}


def rows_kept(shape: Sequence[int]) -> int:
    """How many rows of predictions of this shape are looked at."""
    return max(_LEAST_SAMPLES, shape[0] * _MAX_ELEMENTS // max(1, prod(shape)))


def spread_over(prediction: Sequence[int], target: Sequence[int]) -> bool:
    """Whether shapes are each repeated to fit the other, ``(N, 1)`` and ``(N,)`` to ``(N, N)``.

    Nobody means that. Several predictions for one label (quantiles), and shapes that do not fit, are for the
    loss to know.
    """
    pairs = list(zip_longest(reversed(prediction), reversed(target), fillvalue=1))
    if any(one != other and 1 not in {one, other} for one, other in pairs):
        return False
    return prod(max(pair) for pair in pairs) > max(prod(prediction), prod(target))


def _agreement(x: NDArray[Any], y: NDArray[Any], kind: LossKind, ignored: float | None) -> dict[str, float]:
    """How far predictions and labels go together."""
    if kind.of_classes and x.ndim > 1:
        if y.shape == x.shape:  # probabilities of the classes
            y = y.argmax(1)
        valid = y != ignored if ignored is not None else np.ones(y.shape, np.bool_)
        labels = y[valid]
        if not labels.size:
            return {"ignored": 1.0}
        told = x.argmax(1)
        share = 1.0 - labels.size / y.size
        if told.shape != y.shape or not np.isfinite(labels).all():
            return {"ignored": share}
        numbers = np.clip(labels, -1, 100_000).astype(np.int64) + 1
        facts = _luck(told[valid], numbers, 1)
        return {"ignored": share, **facts, **(_rest(told[valid], labels) if y.ndim == 1 else {})}
    if x.ndim == 2 and y.ndim == 1 and x.shape[1] > 1 and y.dtype.kind in "iu":
        return _luck_of_neighbours(x[:_MAX_NEIGHBOURS].astype(np.float64), y[:_MAX_NEIGHBOURS])
    if y.shape != x.shape:
        return {}
    if kind in _MIDDLE:
        told, wanted = x.reshape(len(x), -1) > _MIDDLE[kind], y.reshape(len(y), -1) > 0.5
        single = wanted.shape[1] == 1
        return {**_luck_of_yes(told, wanted), **(_rest(told[:, 0], wanted[:, 0]) if single else {})}
    x, y = x.ravel().astype(np.float64), y.ravel().astype(np.float64)
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.linalg.norm(x) * np.linalg.norm(y))
    return {"correlation": float(x @ y) / scale if scale > 0 else 0.0}


def _luck(told: NDArray[np.int64], labels: NDArray[np.int64], first: int) -> dict[str, float]:
    """How many predictions are right, how many would be by chance, and how much labels tell.

    Parameters
    ----------
    told
        Predicted classes, from 0 on.
    labels
        Classes, from `first` on.
    first
        Number of class 0 among the labels.
    """
    told = told.ravel() + first
    labels = labels.ravel()
    counts = np.bincount(labels)
    shares = counts / labels.size
    predicted = np.bincount(told, minlength=len(counts))[: len(counts)] / labels.size
    known = shares[shares > 0]
    # Miller and Madow's correction: the entropy of a few samples is too small.
    entropy = -float(known @ np.log(known)) + (len(known) - 1) / (2 * labels.size)
    return {
        "hits": float((told == labels).mean()),
        "chance": float(predicted @ shares),
        "majority": float(shares.max()),
        "labels": float(len(known)),
        "entropy": entropy,
    }


def _luck_of_yes(told: NDArray[np.bool_], labels: NDArray[np.bool_]) -> dict[str, float]:
    """The same for yes and no, in columns: each has a share of yes of its own, which is learnt at once.

    Parameters
    ----------
    told, labels
        Predictions and labels, (samples, columns).
    """
    yes, said = labels.mean(0), told.mean(0)
    mixed = yes[(yes > 0) & (yes < 1)]
    whole = float(labels.mean())
    entropy = -float((mixed * np.log(mixed) + (1 - mixed) * np.log(1 - mixed)).sum())
    return {
        "hits": float((told == labels).mean()),
        "chance": float((said * yes + (1 - said) * (1 - yes)).mean()),
        "majority": max(whole, 1 - whole),
        "labels": 1.0 + (0 < whole < 1),
        "entropy": (entropy + len(mixed) / (2 * len(labels))) / len(yes),
    }


def _rest(told: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    """How many samples have another label than the commonest, and how many of those are told rightly."""
    values, counts = np.unique(labels, return_counts=True)
    others = labels != values[counts.argmax()]
    count = int(others.sum())
    return {"rest": float(count), "rest_hits": float((told == labels)[others].mean()) if count else 1.0}


def _luck_of_neighbours(x: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, float]:
    """The same for embeddings: how often the nearest other row has the same label, and how often by chance.

    Parameters
    ----------
    x
        Embeddings, (samples, columns).
    labels
        Classes, (samples,). Rows with a class of their own do not count.
    """
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    fellows = counts[places] - 1
    valid = fellows > 0
    if valid.sum() < _LEAST_SAMPLES or not np.isfinite(x).all():
        return {}
    square = (x**2).sum(1)
    distance = square[:, None] + square[None, :] - 2.0 * (x @ x.T)
    np.fill_diagonal(distance, np.inf)
    same = labels[distance.argmin(1)] == labels
    return {
        "hits": float(same[valid].mean()),
        "chance": float(fellows[valid].mean() / (len(labels) - 1)),
        "majority": float(counts.max() / len(labels)),
        "labels": float(len(counts)),
        "samples": float(valid.sum()),
    }


def _logsumexp(x: NDArray[Any]) -> NDArray[Any]:
    """``log(sum(exp(x)))`` over the classes."""
    largest = x.max(1, keepdims=True)
    found: NDArray[Any] = np.log(np.exp(x - largest).sum(1)) + largest.squeeze(1)
    return found


def _described(rows: dict[str, NDArray[Any]]) -> dict[str, float]:
    """A few numbers about each array."""
    block = summarize(list(rows.values()))
    count = np.maximum(block.count, 1)
    facts = {
        "min": block.min,
        "max": block.max,
        "size": block.l2 / np.sqrt(count),
        "zeros": block.zero_count / count,
        "broken": (count - block.finite_count).astype(np.float64),
    }
    return {
        f"{name}_{fact}": value
        for fact, values in facts.items()
        for name, value in zip(rows, values.tolist(), strict=True)
    }
