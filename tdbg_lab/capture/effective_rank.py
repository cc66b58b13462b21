"""How many dimensions samples differ along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["effective_rank"]

_LEAST = 8
"""Samples, and columns, below which it says nothing."""
_MAX_ROWS, _MAX_COLUMNS = 128, 1024
"""Of the samples and columns that are looked at: 1 ms."""


def effective_rank(rows: NDArray[Any]) -> float | None:
    """Participation ratio of the principal axes: ``(sum of variances)**2 / sum of squared variances``.

    It is n where n axes share the variance alike, and 1 where samples differ along one line; the sums are the
    trace and the squared norm of the covariance matrix, so that no axes need be found.

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
    x -= x.mean(0)
    inner = x @ x.T if len(x) < x.shape[1] else x.T @ x
    squared = float((inner**2).sum())
    return float(np.trace(inner)) ** 2 / squared if squared > 0 else None
