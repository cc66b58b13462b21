"""SHAP values that grow with the model, instead of being computed anew from all its trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.capture.boosting.model import BoostedModel, Sample

__all__ = ["Contributions"]


class Contributions:
    """SHAP values of one sample.

    They are sums over trees, so the trees that came since the last time are enough: all saved
    steps together cost what one computation at the end does. Where trees change afterwards
    (dropout), they are computed from all trees each time.
    """

    __slots__ = ("_rounds", "_total")

    def __init__(self) -> None:
        self._total: NDArray[np.float64] | None = None
        self._rounds = 0

    def upto_now(self, model: BoostedModel, sample: Sample) -> NDArray[np.float64]:
        """Of all rounds so far, shape ``(n, F + 1)`` or ``(n, classes, F + 1)``, the bias last."""
        rounds = model.rounds
        total = self._total
        if total is None or not model.additive or rounds < self._rounds:
            total = model.contributions(sample, 0, rounds)
        elif rounds > self._rounds:
            total = total + model.contributions(sample, self._rounds, rounds)
        self._total, self._rounds = total, rounds
        return total
