"""Several series of samples at the moments that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["at_same_moments"]


def at_same_moments(
    series: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Moments that all series have, shape ``(S,)``, and their values there, shape ``(N, S)``.

    Parameters
    ----------
    series
        Times in nanoseconds, ascending, and the values at them, of each of ``N`` series.
    """
    if not series:
        return np.empty(0, np.int64), np.empty((0, 0))
    common = series[0][0]
    for time_ns, _ in series[1:]:
        if not np.array_equal(common, time_ns):
            common = np.intersect1d(common, time_ns)
    rows = [values[np.searchsorted(time_ns, common)] for time_ns, values in series]
    return common, np.stack(rows)
