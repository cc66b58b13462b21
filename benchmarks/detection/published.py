"""Thresholds that other tools publish, asked of the same recorded runs.

Written anew from what papers and documentation state, as defaults, without code of theirs. "Epoch" is the
distance of two evaluations of a program. Where a tool reads what a run does not hold (accuracy of a
regression, say), that check is left out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Kind
from tdbg_lab.stats.bins import LOWER, UPPER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tdbg_lab.rules.view import RunView

__all__ = ["DETECTORS", "AutoTrainer", "DeepDiagnosis", "Umlaut"]

Found = tuple[str, str]


class _ByEpoch:
    """Something that is asked at the end of each epoch."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.epochs: list[dict[str, float]] = facts["epochs"]
        self.ends = {int(one["step"]): place for place, one in enumerate(self.epochs)}

    def check(self, step: int, view: RunView) -> Iterator[Found]:
        yield from self.always(step, view)
        if step in self.ends:
            yield from self.epoch(self.epochs[: self.ends[step] + 1], view)

    def always(self, step: int, view: RunView) -> Iterator[Found]:
        return iter(())

    def epoch(self, epochs: list[dict[str, float]], view: RunView) -> Iterator[Found]:
        return iter(())


def _bad_loss(view: RunView) -> str:
    for name in view.losses():
        value = view.value(name)
        if value is not None and not math.isfinite(value):
            return name
    return ""


def _kernels(view: RunView, kind: Kind) -> list[tuple[str, Any]]:
    """Matrices and filters, in the order of their first appearance."""
    return [
        (key.name, row) for key, row in view.frame().items(kind) if len(key.shape) > 1
    ]  # fmt: skip


class AutoTrainer(_ByEpoch):
    """AUTOTRAINER (ICSE'21): gradient norms, zero gradients, and the history of the accuracy."""

    def epoch(self, epochs: list[dict[str, float]], view: RunView) -> Iterator[Found]:
        if len(epochs) < 0.3 * len(self.epochs):
            return
        gradients = _kernels(view, Kind.GRADIENT)
        bad = _bad_loss(view)
        if bad or any(row.not_finite for _, row in gradients):
            yield "exploding_gradient", bad
        elif len(gradients) > 1 and gradients[-1][1].l2 > 0:
            first, ratio = gradients[0][1].l2, gradients[0][1].l2 / gradients[-1][1].l2
            if ratio < 1e-3 and first < 1e-4:
                yield "vanishing_gradient", gradients[0][0]
            if ratio > 70:
                yield "exploding_gradient", gradients[0][0]
        total = sum(row.count for _, row in gradients)
        if total and sum(row.zero_count for _, row in gradients) >= 0.7 * total:
            yield "dying_relu", gradients[0][0]
        yield from self._accuracy(epochs)

    def _accuracy(self, epochs: list[dict[str, float]]) -> Iterator[Found]:
        if not self.facts["classes"] or "train_score" not in epochs[-1]:
            return
        train = np.array([one["train_score"] for one in epochs])
        gains = np.diff(train)
        swings = np.sum((gains[:-1] * gains[1:] < 0) & (np.minimum(abs(gains[:-1]), abs(gains[1:])) >= 0.03))
        if len(train) > 2 and swings >= 0.25 * len(train):
            yield "oscillating_loss", ""
        if len(train) > 2 and gains.max() < 0.01 and train[-1] < 0.6:
            yield "slow_convergence", ""
        gap = train[-1] - epochs[-1]["val_score"]
        if gap > (0.07 if train[-1] > 0.9 else 0.1):
            yield "overfit", ""


class DeepDiagnosis(_ByEpoch):
    """DeepDiagnosis (ICSE'22): numbers, saturation, dead nodes, variance of weights, learning rate."""

    def always(self, step: int, view: RunView) -> Iterator[Found]:
        frame = view.frame()
        bad = _bad_loss(view)
        if bad:
            yield "numerical_error", bad
        for key, row in frame.items(Kind.GRADIENT, Kind.WEIGHT, Kind.ACTIVATION):
            if row.not_finite:
                yield "numerical_error", key.name
            elif key.kind == Kind.GRADIENT and row.mean_abs < 1e-7:
                yield "vanishing_gradient", key.name
            elif key.kind == Kind.WEIGHT and len(key.shape) > 1 and not 1e-5 <= row.std**2 <= 10:
                yield "weight_variance", key.name
        for key in view.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/"):
            value = view.value(key.name)
            if value is not None and not 1e-5 <= value <= 1e-1:
                yield "learning_rate", ""
        yield from self._activations(view)

    def _activations(self, view: RunView) -> Iterator[Found]:
        items = list(view.frame().items(Kind.ACTIVATION))
        for place, (key, row) in enumerate(items):
            rectified = "relu" in key.collections or (row.min == 0 and row.zero_count > 0)
            if rectified and row.count and row.zero_count > 0.7 * row.count:
                yield "dead_node", key.name
            squashed = row.max <= 1 and row.min >= -1 and row.min != row.max
            if squashed and place and self._beyond(items[place - 1][1], 5.0) > 0.5:
                yield "saturated_activation", key.name

    @staticmethod
    def _beyond(row: Any, limit: float) -> float:
        """Share of the elements beyond a limit in absolute value, from the histogram."""
        block = row.block
        part = slice(block.hist_offsets[row.row], block.hist_offsets[row.row + 1])
        bins, counts = block.hist_bins[part], block.hist_counts[part]
        if not len(bins) or not row.count:
            return 0.0
        inner = np.minimum(np.abs(LOWER[bins]), np.abs(UPPER[bins]))
        return float(counts[inner >= limit * 0.9].sum() / row.count)


class Umlaut(_ByEpoch):
    """UMLAUT (CHI'21): range of inputs, learning rate, one epoch of diverging losses, too good to be true."""

    def always(self, step: int, view: RunView) -> Iterator[Found]:
        limit = self.facts["input_max"]
        if limit is not None and limit > 1:
            yield "input_range", ""
        bad = _bad_loss(view)
        if bad:
            yield "nan_loss", bad
        for key in view.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/"):
            value = view.value(key.name)
            if value is not None and not 1e-7 <= value <= 1e-2:
                yield "learning_rate", ""

    def epoch(self, epochs: list[dict[str, float]], view: RunView) -> Iterator[Found]:
        if self.facts["classes"] and epochs[-1]["val_score"] > 0.95:
            yield "accuracy_too_high", ""
        if len(epochs) > 1 and "val_loss" in epochs[-1] and "train_loss" in epochs[-1]:
            before, now = epochs[-2:]
            if now["val_loss"] > before["val_loss"] and now["train_loss"] < before["train_loss"]:
                yield "overfit", ""


DETECTORS = {"autotrainer": AutoTrainer, "deepdiagnosis": DeepDiagnosis, "umlaut": Umlaut}
