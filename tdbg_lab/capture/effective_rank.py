"""How many dimensions samples differ along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats.participation import participation_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["effective_rank"]

_LEAST = 8
"""Samples, and columns, below which it says nothing."""
_MAX_ROWS, _MAX_COLUMNS = 128, 1024
"""Of the samples and columns that are looked at: 1 ms."""


def effective_rank(rows: NDArray[Any]) -> float | None:
    """Participation ratio of the principal axes of the first samples and columns.

    Parameters
    ----------
    rows
        Shape ``(samples, columns)``.

    Returns
    -------
    float or None
        None for less than eight of either, for what is not finite, and where all samples are the same.
    """
    x = rows[:_MAX_ROWS, :_MAX_COLUMNS].astype(np.float64)
    if min(x.shape) < _LEAST or not np.isfinite(x).all():
        return None
    ratio = participation_ratio(x - x.mean(0))
    return None if np.isnan(ratio) else ratio
