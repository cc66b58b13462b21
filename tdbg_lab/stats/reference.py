"""The statistics in plain numpy and float64: slow and plain to see. The other kernels must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.bins import N_BINS, bin_of
from tdbg_lab.stats.block import columns, concat, empty_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["modulus", "real_values", "summarize", "summarize_one"]


def summarize(
    arrays: Sequence[NDArray[Any]], *, channel_axes: Sequence[int | None] | None = None
) -> StatsBlock:
    """Statistics of each array, one row each.

    Parameters
    ----------
    arrays : sequence of numpy arrays
        Any shape and strides; bool, integer, float or complex. Others get a row with a reason.
    channel_axes : sequence of int or None, optional
        Per array, the axis to measure channels along; None to leave them out.
    """
    axes = channel_axes if channel_axes is not None else (None,) * len(arrays)
    return concat([summarize_one(array, axis) for array, axis in zip(arrays, axes, strict=True)])


def summarize_one(array: NDArray[Any], axis: int | None = None) -> StatsBlock:
    """Statistics of one array as a block of one row."""
    values = real_values(array)
    if values is None:
        return empty_block(1, f"dtype {np.asarray(array).dtype} is not numeric")
    flat = values.reshape(-1)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = flat.astype(np.float64)
    finite = np.isfinite(wide)
    hist = np.bincount(bin_of(flat[finite & (wide != 0)]), minlength=N_BINS)
    bins = np.flatnonzero(hist)
    zero_frac, mean = _channels(values, axis)
    counts = (flat.size, np.isnan(wide).sum(), (wide == np.inf).sum(), (wide == -np.inf).sum())
    ints = np.array([*counts, (wide == 0).sum()], np.int64)[:, None]
    return StatsBlock(
        **columns(ints, np.array(_moments(wide[finite]))[:, None]),
        hist_offsets=np.array([0, len(bins)]),
        hist_bins=bins.astype(np.uint16),
        hist_counts=hist[bins].astype(np.int64),
        channel_offsets=np.array([0, len(mean)]),
        channel_zero_frac=zero_frac,
        channel_mean=mean,
    )


def real_values(array: Any) -> NDArray[Any] | None:
    """Real numbers of an array, same shape, in their own precision; None when it holds none.

    Complex numbers are given by their modulus in float64. Types that other packages add to numpy
    (``bfloat16``, ``float8_*``) and extended precision become float32 and float64.
    """
    values = np.asarray(array)
    kind = values.dtype.kind
    if kind == "c":
        return modulus(values)
    if kind in "biu":
        return values
    if kind == "f":
        return values.astype(np.float64) if values.dtype.itemsize > 8 else values
    if kind == "V" and values.dtype.name.startswith(("bfloat16", "float8_")):
        with np.errstate(invalid="ignore"):
            return values.astype(np.float32)
    return None


def modulus(values: NDArray[Any]) -> NDArray[np.float64]:
    """Modulus of complex numbers in float64; an infinite part makes it infinite, NaN or not."""
    wide = values.astype(np.complex128)
    if values.dtype == np.complex64:  # squares of float32 are exact in float64: the same everywhere
        with np.errstate(over="ignore", invalid="ignore"):
            length = np.sqrt(wide.real**2 + wide.imag**2)
        return np.where(np.isinf(wide.real) | np.isinf(wide.imag), np.inf, length)
    return np.asarray(np.hypot(wide.real, wide.imag))


def _moments(x: NDArray[np.float64]) -> tuple[float, ...]:
    """min, max, mean, std, l1, l2 of finite values, shape ``(n,)``; scaled, so squares stay in range."""
    if not len(x):
        return (np.nan,) * 6
    low, high = float(x.min()) + 0.0, float(x.max()) + 0.0
    scale = 2.0 ** np.frexp(max(abs(low), abs(high), 5e-324))[1].clip(-1022, 1023)
    y = x / scale
    mean = min(max(float(y.mean() * scale), low), high)
    std = 0.0 if low == high else float(np.sqrt(((y - y.mean()) ** 2).mean()) * scale)
    with np.errstate(over="ignore"):
        l1, l2 = float(np.abs(y).sum() * scale), float(np.sqrt((y**2).sum()) * scale)
    return low, high, mean, std, l1, l2


def _channels(values: NDArray[Any], axis: int | None) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Share of zeros and mean of the finite values per channel, each shape ``(C,)``."""
    if axis is None or not values.size or not -values.ndim <= axis < values.ndim:
        return np.zeros(0, np.float32), np.zeros(0, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1).astype(np.float64)
        finite = np.isfinite(rows)
        mean = np.where(finite, rows, 0.0).sum(axis=1) / finite.sum(axis=1)
        return (rows == 0).mean(axis=1).astype(np.float32), mean.astype(np.float32)
