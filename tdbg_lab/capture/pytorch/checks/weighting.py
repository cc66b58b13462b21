"""How the weights that a loss has for classes go with how many there are of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Weighting"]

_MAX_CLASSES = 1000


class Weighting:
    """Labels of each class that were seen at saved steps, beside the weights of a loss.

    Parameters
    ----------
    weights
        Weight of each class, shape ``(C,)``, positive; a single one is that of yes, no having one of 1.
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights
        self._counts = np.zeros(len(weights), np.int64)

    @classmethod
    def of(cls, given: Any) -> Weighting | None:
        """Of what a loss was given as ``weight`` or ``pos_weight``; None where that says nothing."""
        if not isinstance(given, torch.Tensor) or given.ndim > 1 or not 1 <= given.numel() <= _MAX_CLASSES:
            return None
        weights = given.detach().cpu().double().reshape(-1).numpy()
        return cls(np.r_[1.0, weights] if len(weights) == 1 else weights)

    def facts(self, labels: NDArray[Any]) -> dict[str, float]:
        """Add labels, numbers of classes, and tell what is known.

        ``weighted_labels`` is how many there were, ``weighted_rarest`` of the rarest class that has a weight
        and ``weighted_commonest`` of the commonest. ``weight_slope`` says how weights go with counts, both as
        logarithms: -1 for weights that make up for the counts, 1 for the counts themselves; ``weight_fit`` is
        the correlation.
        """
        flat = np.rint(labels.ravel())
        known = flat[(flat >= 0) & (flat < len(self._counts))].astype(np.int64)
        self._counts += np.bincount(known, minlength=len(self._counts))
        there = (self._counts > 0) & np.isfinite(self.weights) & (self.weights > 0)
        if there.sum() < 2:
            return {}
        found = {
            "weighted_labels": float(self._counts[there].sum()),
            "weighted_rarest": float(self._counts[there].min()),
            "weighted_commonest": float(self._counts[there].max()),
        }
        x, y = np.log(self._counts[there]), np.log(self.weights[there])
        x, y = x - x.mean(), y - y.mean()
        if not x.any() or not y.any():
            return found
        fit = {"weight_slope": float(x @ y / (x @ x)), "weight_fit": float(x @ y / np.sqrt(x @ x * (y @ y)))}
        return found | fit
