"""Medians of the few hundred numbers of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["median"]


def median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What ``numpy.median`` says along the first axis; of so few numbers in a tenth of its time.

    Parameters
    ----------
    values
        Shape ``(N, ...)``; a thousand numbers or so.

    Returns
    -------
    NDArray
        Shape ``(...)``: NaN where there is one among the numbers, or where there are none.
    """
    count = len(values)
    if not count:
        return np.full(values.shape[1:], np.nan)
    ordered = np.sort(values, axis=0)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return np.where(np.isnan(ordered[-1]), np.nan, middle)  # NaN is sorted behind all numbers
