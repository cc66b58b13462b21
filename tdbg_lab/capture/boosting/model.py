"""What a boosted model has to answer, whichever library trains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.capture.boosting.trees import Tree
    from tdbg_lab.records import Kind, Mode

__all__ = ["IMPORTANCE_KINDS", "BoostedModel", "Metric", "Sample"]

IMPORTANCE_KINDS = ("weight", "gain", "cover", "total_gain", "total_cover")
"""Splits, mean gain, mean cover, summed gain, summed cover of a feature."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number that the library computed after a round."""

    name: str
    """``<data set>-<metric>``."""
    kind: Kind
    """A loss, or a scalar when more is better."""
    mode: Mode
    value: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of the data the user gave, the same ones at every step."""

    rows: Any
    """As the library wants them. ``n`` rows."""
    labels: NDArray[Any] | None
    """Shape ``(n,)`` or ``(n, targets)``, numbers."""
    shap_rows: Any
    """The first of them to explain, as the library wants them."""


class BoostedModel(Protocol):
    """A model in training. Every method may raise: the session guards each of them."""

    feature_names: tuple[str, ...]
    """``F`` names."""

    @property
    def rounds(self) -> int:
        """Rounds the model has so far."""

    @property
    def additive(self) -> bool:
        """Whether a round leaves the trees before it as they are (not so with dropout)."""

    def importance(self) -> Mapping[str, NDArray[np.float64]]:
        """Importance by kind, each of shape ``(F,)``, not normalised."""

    def trees(self, first: int, last: int) -> Sequence[Tree]:
        """Trees of the rounds `first` up to, not including, `last`; none for a linear model."""

    def sample(self, data: Any, what: str, rows: int, shap_rows: int) -> Sample:
        """At most `rows` rows of what the user gave as `what`, evenly spread.

        Raises
        ------
        ConfigError
            They do not fit the model.
        """

    def predict(self, sample: Sample) -> NDArray[Any]:
        """What the model answers, shape ``(n,)`` or ``(n, classes)``."""

    def classes(self, predictions: NDArray[Any]) -> NDArray[np.int64] | None:
        """Class of each row, shape ``(n,)``; None where the objective is not a classification."""

    def contributions(self, sample: Sample, first: int, last: int) -> NDArray[np.float64]:
        """SHAP values of the rounds `first` up to, not including, `last`.

        Shape ``(n, F + 1)`` or ``(n, classes, F + 1)``, the bias last.
        """

    def training_metrics(self, sample: Sample | None) -> Sequence[Metric]:
        """The metrics on the training data, where no evaluation set is those."""
