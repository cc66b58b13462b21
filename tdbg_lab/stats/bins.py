"""The fixed histogram bins: a value belongs to the bin of its leading float32 bits.

``bin = float32 bits >> 21`` keeps sign, exponent and two mantissa bits: four bins an octave, the
same for every tensor, step, rank and device, so histograms need no range pass and add up exactly.
Only finite non-zero values are binned. Bins 0 to 1019 are positive, ascending; 1024 to 2043 are
negative, descending in value; the others (exponent 255) stay empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BIN_SHIFT", "CENTER", "LOWER", "N_BINS", "RELATIVE_ERROR", "bin_of", "ordered", "to_float32"]

N_BINS = 2048
BIN_SHIFT = 21
"""Bits of a float32 that its bin does not tell."""
_HALF = N_BINS // 2
_MAX = np.finfo(np.float32).max
_TINY = np.finfo(np.float32).smallest_subnormal

RELATIVE_ERROR = 0.125
"""Bound of ``|CENTER[bin] - value| / |value|`` for ``2**-126 <= |value| < 2**128`` (float32's normal
range); below it, the error is at most ``2**-127``."""


def to_float32(values: Any) -> NDArray[np.float32]:
    """Round to float32 as the bins do, same shape.

    A non-zero that would become 0 becomes the smallest subnormal of its sign; a finite value that
    would overflow becomes the largest finite float32 of its sign.
    """
    exact = np.asarray(values)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = np.atleast_1d(exact).astype(np.float32)
    if exact.dtype == np.float64:
        flat = np.atleast_1d(exact)
        lost = (rounded == 0) & (flat != 0)
        rounded[lost] = np.copysign(_TINY, flat[lost])
        over = np.isinf(rounded) & np.isfinite(flat)
        rounded[over] = np.copysign(_MAX, flat[over])
    return rounded.reshape(exact.shape)


def bin_of(values: Any) -> NDArray[np.uint16]:
    """Bin of each value, same shape; meaningful for finite non-zero values only."""
    bits = np.atleast_1d(to_float32(values)).view(np.uint32)
    return (bits >> np.uint32(BIN_SHIFT)).astype(np.uint16).reshape(np.shape(values))


def _edges() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    starts = (np.arange(_HALF + 1, dtype=np.uint32) << np.uint32(BIN_SHIFT)).astype(np.uint32)
    with np.errstate(invalid="ignore"):
        magnitude = starts.view(np.float32).astype(np.float64)
    finite = (255 << 23) >> BIN_SHIFT
    magnitude[finite:] = 2.0**128  # the upper edge of the largest finite bin; the rest have no width
    near, far = magnitude[:_HALF], magnitude[1:]
    near = near.copy()
    far = far.copy()
    far[finite - 1] = 2.0**128
    return np.concatenate([near, -far]), np.concatenate([far, -near])


LOWER, UPPER = _edges()
"""Signed value edges of each bin, ``LOWER < UPPER``. Shape ``(2048,)``."""
CENTER: NDArray[np.float64] = (LOWER + UPPER) / 2
"""The value that stands for a bin. Shape ``(2048,)``."""
for _table in (LOWER, UPPER, CENTER):
    _table.flags.writeable = False
__all__ += ["UPPER"]


def ordered(bins: Any) -> NDArray[np.intp]:
    """Index order of `bins` by value: most negative first, largest positive last."""
    return np.argsort(CENTER[np.asarray(bins, dtype=np.intp)], kind="stable")
