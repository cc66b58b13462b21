"""Boosted trees that are deeper than the data bear."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.losses.pairs import find_pair
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Row
    from tdbg_lab.rules.view import RunView

__all__ = ["TreeDepth"]


@rule("tree_depth", title="Depth of trees")
@dataclass(frozen=True, kw_only=True)
class TreeDepth(Rule):
    """Deep trees that learn the training data by heart.

    Deep trees alone are no trouble (XGBoost's own default is 6). A depth of at least `min_depth` is found
    when the evaluation loss is above its best by `min_rise` percent and the training loss below what it was
    then, or when the classes of practically all training rows are told right (`by_heart`) and of the
    evaluation rows `min_gap` points fewer; without an evaluation loss, from `depth_notice` on, a notice.

    With `classic`, the condition of SageMaker Debugger to the letter: the binary logarithm of the largest
    node number of a tree is above `depth` (AWS developer guide, TreeDepth).
    """

    min_depth: int = 7
    """Splits on the longest way, more than XGBoost's default, from which depth explains a rising evaluation
    loss."""
    depth_notice: int = 16
    """Splits on the longest way that are worth knowing without an evaluation loss."""
    min_rise: float = 10.0
    """Evaluation loss above its best, percent of the best."""
    patience: int = 5
    """Evaluations in a row."""
    by_heart: float = 99.0
    """Training rows told right, percent, from which they are known by heart."""
    min_gap: float = 25.0
    """Evaluation rows told right, percent points less than training rows, that are too many to be chance."""
    min_rows: int = 100
    """Evaluation rows with labels and predicted classes that are needed: the error of a share is 5 points."""
    classic: bool = False
    depth: float = 4.0
    """Classic: largest log2 of a node number."""

    _ADVICE: ClassVar = (
        "Lower max_depth (3 to 6), or raise min_child_weight and gamma.",
        "Stop early on the evaluation set (early_stopping_rounds).",
        "Let trees see part of rows and features (subsample, colsample_bytree).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_depth", "depth_notice", "patience", "min_rows", at_least=1)
        self.require("depth", "min_rise", at_least=0)
        self.require("by_heart", "min_gap", at_least=0, at_most=100)

    def needs(self) -> Needs:
        """Trees, as the callback of XGBoost or LightGBM records them."""
        return Needs(kinds=(Kind.CUSTOM,), regex=r"(^|/)trees?/", collections=("trees",), raw=True)

    def not_applicable(self, run: RunView) -> str:
        """No trees."""
        if run.tensors(regex=r"(^|/)trees?/"):
            return ""
        return "No trees were recorded so far: they come with the callback of XGBoost or LightGBM."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Measure the deepest tree of this round."""
        if self.classic:
            node = _row(run, r"(^|/)trees?/(Node|id)$")
            levels = math.log2(node.max) if node is not None and node.max >= 1 else 0.0
            return self._found(step, levels, f"more than {self.depth:g}") if levels > self.depth else None
        row = _row(run, r"(^|/)trees?/depth$")
        if row is None or not math.isfinite(row.max) or row.max < min(self.min_depth, self.depth_notice):
            return None
        rise = self._rise_percent(run)
        if rise is not None:
            if row.max < self.min_depth:
                return None
            if rise >= self.min_rise:
                return self._found(step, row.max, f"and the evaluation loss is {rise:.0f} % above its best")
            return self._by_heart(step, run, row.max)
        if row.max < self.depth_notice:
            return None
        return self._found(step, row.max, "and there is no evaluation loss to judge by", Severity.NOTICE)

    def _by_heart(self, step: int, run: RunView, levels: float) -> Finding | None:
        """Training rows that are told right, and evaluation rows that are not."""
        train, held = _right_percent(run, Mode.TRAIN), _right_percent(run, Mode.EVAL, self.min_rows)
        if train is None or held is None or train < self.by_heart or train - held < self.min_gap:
            return None
        why = f"and tell {train:.0f} % of the training rows right but {held:.0f} % of the evaluation rows"
        return self._found(step, levels, why)

    def _rise_percent(self, run: RunView) -> float | None:
        """Least rise of the last evaluations above the best; None where no evaluation loss is a number."""
        pair = find_pair(run)
        if pair is None or not np.isfinite(pair.held.values).any():
            return None
        if len(pair.held.values) <= self.patience:
            return 0.0
        train, lowest = pair.train_at(), int(np.nanargmin(pair.held.values))
        if train[-1] >= train[lowest]:  # nothing was learnt by heart: the trees are grown for another loss
            return 0.0
        best = float(np.nanmin(pair.held.values))
        return 100.0 * (float(np.nanmin(pair.held.values[-self.patience :])) - best) / max(abs(best), 1e-12)

    def _found(self, step: int, levels: float, why: str, severity: Severity = Severity.WARNING) -> Finding:
        return self.finding(
            step,
            f"Trees are {levels:.3g} levels deep, {why}.",
            severity=severity,
            tensor="trees/depth",
            evidence={"depth_levels": levels},
            advice=self._ADVICE,
            view=ViewRef("statistics", {"tensors": ["trees/depth"], "statistic": "max"}),
        )


def _row(run: RunView, regex: str) -> Row | None:
    for mode in Mode:
        frame = run.frame(mode)
        for key in run.tensors(regex=regex):
            row = frame.get(key.name)
            if row is not None:
                return row
    return None


def _right_percent(run: RunView, mode: Mode, min_rows: int = 1) -> float | None:
    """Rows whose class is predicted rightly at the checked step; None without enough of them."""
    labels, told = run.raw("labels", mode=mode), run.raw("predicted_labels", mode=mode)
    if labels is None or told is None or labels.shape != told.shape or labels.size < min_rows:
        return None
    return 100.0 * float((labels == told).mean())
