"""Numbers that stand in for labels that are not known: -999."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["is_stand_in", "stand_in_among"]

_APART = 10.0
"""Times the size of all others from which a number is none of them."""
_LEAST_SHARE = 0.002
"""Share of the rows that have it: fewer may be an outlier."""


def is_stand_in(least: float, largest: float) -> bool:
    """Whether the least label is made of nines, and far below the others as far as these are known.

    Nothing is known of gaps where labels are read batch by batch: so only negative ones count, which no
    bound of counts or percentages is.
    """
    return least <= -99 and _of_nines(least) and -least >= _APART * abs(largest)


def stand_in_among(labels: NDArray[Any]) -> float | None:
    """The number of nines that some of the labels are, far from all others; None where there is none.

    Parameters
    ----------
    labels
        Of the rows, ``(rows,)``; numbers.
    """
    for end in (float(labels.min()), float(labels.max())):
        others = labels[labels != end]
        if abs(end) < 99 or not _of_nines(end) or not len(others):
            continue
        if len(labels) - len(others) < max(2.0, _LEAST_SHARE * len(labels)):
            continue
        if abs(end) >= _APART * float(np.abs(others).max()):
            return end
    return None


def _of_nines(number: float) -> bool:
    return number.is_integer() and set(str(abs(int(number)))) == {"9"}
