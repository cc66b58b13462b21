"""Training rows that are known by heart, while much is left of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.losses.pairs import LossPair

__all__ = ["ByHeart", "known_by_heart"]

_FIRST = 3
"""Losses of the untrained model, nearly."""
_KNOWN, _LEFT, _APART = 0.1, 0.2, 0.2
"""Of the start: training loss below which its rows are known by heart, and evaluation loss above which much
is left; and the one over the other. In healthy trainings it was a half and more where the first two held."""
_GROWN = 2.0
"""Growth of what the evaluation loss is over the training loss since the first evaluation: where it is many
times as large from the beginning, as a sum is, the two are not measured alike."""


class ByHeart(NamedTuple):
    """The training loss at first and now, and the evaluation loss now."""

    start: float
    train: float
    held: float


def known_by_heart(
    pair: LossPair, train: NDArray[np.float64], held: NDArray[np.float64], evaluations: int
) -> ByHeart | None:
    """Compare both losses with the start; None where they are not so far apart.

    Parameters
    ----------
    pair
        The losses; of any kind whose least value is zero.
    train, held
        Losses by evaluation, ``(evaluations so far,)``, finite.
    evaluations
        Last ones that count: all of them must be so.
    """
    values = pair.train.values[np.isfinite(pair.train.values)]
    if float(values.min()) <= 0:
        return None
    start = float(np.median(values[:_FIRST]))
    last_train, last_held = train[-evaluations:], held[-evaluations:]
    if float(last_train.max()) >= _KNOWN * start or float(last_held.min()) <= _LEFT * start:
        return None
    apart = bool((last_train < _APART * last_held).all())
    apart = apart and bool(held[-1] * train[0] > _GROWN * held[0] * train[-1])
    return ByHeart(start, float(train[-1]), float(held[-1])) if apart else None
