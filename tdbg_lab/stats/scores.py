"""Facts about predictions of classes and their labels, in one call of the kernels."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats.call import CLASS_COLUMNS, SCORE
from tdbg_lab.stats.engine import engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NAMES", "class_scores"]

NAMES = (
    *("hits", "chance", "majority", "labels", "entropy", "rest", "rest_hits", "ignored", "spread"),
    *(
        f"{name}_{fact}"
        for name in ("prediction", "target", "row_sum", "row_logsumexp", "batch_sum")
        for fact in ("min", "max", "size", "zeros", "broken")
    ),
)
"""What it tells, in its order."""
_NONE = -(1 << 63)


def class_scores(x: NDArray[Any], y: NDArray[Any], ignored: float | None) -> dict[str, float] | None:
    """Facts by `NAMES`; `tdbg_lab.capture.predictions.facts_of` says what they are.

    Parameters
    ----------
    x
        Predictions, ``(samples, classes) float32``.
    y
        Labels, ``(samples,) int64``.
    ignored
        Label that does not count.

    Returns
    -------
    None where they are to be computed otherwise: arrays of another kind or layout, values that are not
    finite, labels that are no class, or no label that counts; and while the kernels are not ready.
    """
    plain = x.dtype == np.float32 and x.ndim == 2 and x.flags.c_contiguous and x.flags.aligned
    labelled = y.dtype == np.int64 and y.shape == x.shape[:1] and y.flags.c_contiguous
    if not (plain and labelled and x.size and engine().usable()):
        return None
    n, classes = x.shape
    skipped = _NONE if ignored is None else int(ignored)
    given = array("q", (x.ctypes.data, n, classes, y.ctypes.data, skipped))
    space = np.empty((CLASS_COLUMNS, classes))
    found = array("d", bytes(8 * (1 + len(NAMES))))
    engine().call_with(
        SCORE, given.buffer_info()[0], 1, space=space.ctypes.data, target=found.buffer_info()[0]
    )
    return dict(zip(NAMES, found[1:], strict=True)) if found[0] else None
