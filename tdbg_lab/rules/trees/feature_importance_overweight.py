"""Boosted trees that rest on a few features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.held_rows import held_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.held_rows import HeldRows
    from tdbg_lab.rules.view import RunView

__all__ = ["FeatureImportanceOverweight"]


@rule("feature_importance_overweight", title="Weight of few features")
@dataclass(frozen=True, kw_only=True)
class FeatureImportanceOverweight(Rule):
    """One feature of many that gives nearly all of the gain.

    Some data are like that, but a feature that is made from the label (a leak) looks so as well. Above
    `threshold_notice` percent of the total gain it is a notice, above `threshold_gain` a warning; models of
    fewer than `min_features` features are not judged. One with more than `threshold_leak` percent is a
    warning, too, where predictions go with the labels of the training rows and not with those of the
    evaluation: what that feature tells is not there.

    With `classic`, the condition of SageMaker Debugger to the letter: the `nfeatures` features that are
    used most often have more than `threshold` of the sum of their `weight` (AWS developer guide,
    FeatureImportanceOverweight).
    """

    threshold_gain: float = 98.0
    """Share of the total gain of one feature, percent."""
    threshold_notice: float = 80.0
    """Share of the total gain of one feature that is worth knowing, percent."""
    threshold_leak: float = 50.0
    """Share of the total gain of one feature that tells of training rows only, percent."""
    min_features: int = 5
    """Features of a model that is judged."""
    start_step: int = 9
    """First boosting round that is judged: the first trees take the best feature."""
    classic: bool = False
    threshold: float = 0.8
    """Classic: largest share of the sum."""
    nfeatures: int = 3
    """Classic: features whose importance is added up."""
    regex: str = r"feature_importance/weight$"
    """Classic: names of the importances."""

    _ADVICE: ClassVar = (
        "Look whether that feature is known when a prediction is made: it may be made from the label.",
        "Train without it and compare the evaluation metric.",
        "Let trees see part of the features only (colsample_bytree), and regularise (gamma, lambda).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold_gain", "threshold_notice", "threshold_leak", at_least=0, at_most=100)
        self.require("threshold", at_least=0, at_most=1)
        self.require("nfeatures", "min_features", at_least=1)
        self.require("start_step", at_least=0)

    def needs(self) -> Needs:
        """Importances of features, raw."""
        return Needs(kinds=(Kind.CUSTOM,), regex="feature_importance/", raw=True)

    def not_applicable(self, run: RunView) -> str:
        """No importances."""
        regex = self.regex if self.classic else r"^feature_importance/total_gain$"
        if run.tensors(regex=regex):
            return ""
        return "No importances of features were recorded: they come with the callback of XGBoost or LightGBM."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the importances of the features."""
        if self.classic:
            for key in run.tensors(regex=self.regex):
                values = _values(run, key.name)
                if values is not None and values.sum() > 0:
                    share = float(np.sort(values)[::-1][: self.nfeatures].sum() / values.sum())
                    if share > self.threshold:
                        return self._found(step, run, key.name, values, self.nfeatures)
            return None
        name = "feature_importance/total_gain"
        values = _values(run, name)
        if values is None or len(values) < self.min_features or values.sum() <= 0 or step < self.start_step:
            return None
        share = 100.0 * float(values.max() / values.sum())
        if share > self.threshold_gain:
            return self._found(step, run, name, values, 1)
        if share > self.threshold_leak and (rows := held_rows(run)) is not None and rows.tell_nothing:
            return self._found(step, run, name, values, 1, rows)
        return self._found(step, run, name, values, 1) if share > self.threshold_notice else None

    def _found(  # noqa: PLR0917 - all of it goes into the finding
        self,
        step: int,
        run: RunView,
        name: str,
        values: NDArray[np.float64],
        n: int,
        rows: HeldRows | None = None,
    ) -> Finding:
        first = np.argsort(values)[::-1][:n]
        share = float(values[first].sum() / values.sum())
        known = run.info.capture.get("features") if isinstance(run.info.capture, dict) else None
        names = [str(known[i]) if isinstance(known, list) and i < len(known) else f"f{i}" for i in first]
        high = self.classic or rows is not None or share > self.threshold_gain / 100.0
        only = (
            ""
            if rows is None
            else (
                f" Predictions go with the labels of the training rows (correlation {rows.trained:.2f}), and "
                f"not with those of the evaluation ({rows.held:.2f})."
            )
        )
        return self.finding(
            step,
            f"{', '.join(names)} {'has' if n == 1 else 'have'} {100 * share:.0f} % of "
            f"{name.removeprefix('feature_importance/')} of {len(values)} features.{only}",
            severity=Severity.WARNING if high else Severity.NOTICE,
            tensor=name,
            evidence={"share_percent": round(100 * share, 2), "features": ", ".join(names)},
            advice=self._ADVICE,
            view=ViewRef("statistics", {"tensors": [name], "statistic": "max"}),
        )


def _values(run: RunView, name: str) -> NDArray[np.float64] | None:
    """Importances at the checked step, from either mode."""
    for mode in Mode:
        raw = run.raw(name, mode=mode)
        if raw is not None and raw.ndim == 1 and len(raw) and np.isfinite(raw).all():
            return np.asarray(raw, np.float64)
    return None
