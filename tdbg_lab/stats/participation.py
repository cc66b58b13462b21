"""How many principal axes share the variance of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["participation_ratio"]


def participation_ratio(centred: NDArray[np.float64]) -> float:
    """Participation ratio, ``(sum of variances)**2 / sum of squared variances`` along the principal axes.

    It is n where n axes share the variance alike, and 1 where samples differ along one line. The sums are the
    trace and the squared norm of the covariance matrix, so that no axes need be found.

    Parameters
    ----------
    centred
        Finite numbers of shape ``(samples, columns)`` with the mean of each column taken away.

    Returns
    -------
    float
        NaN where all samples are the same.
    """
    inner = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    squared = float((inner**2).sum())
    return float(np.trace(inner)) ** 2 / squared if squared > 0 else float("nan")
