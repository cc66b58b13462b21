"""Statistics of arrays for made-up runs: small and plain, no compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_COUNTS = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
_FLOATS = ("min", "max", "mean", "std", "l1", "l2")


def block_of(arrays: Sequence[NDArray[Any]], channel_axes: Sequence[int | None] | None = None) -> StatsBlock:
    """Statistics of `arrays`, one row each; per channel where an axis is given."""
    axes = channel_axes or [None] * len(arrays)
    rows = [_row(np.asarray(array)) for array in arrays]
    channels = [_channels(np.asarray(array), axis) for array, axis in zip(arrays, axes, strict=True)]
    bins = [row[1] for row in rows]
    moments: dict[str, Any] = {name: np.array([row[0][name] for row in rows], np.int64) for name in _COUNTS}
    moments |= {name: np.array([row[0][name] for row in rows], np.float64) for name in _FLOATS}
    return StatsBlock(
        **moments,
        hist_offsets=_offsets([len(b[0]) for b in bins]),
        hist_bins=np.concatenate([np.empty(0, np.uint16), *(b[0] for b in bins)]).astype(np.uint16),
        hist_counts=np.concatenate([np.empty(0, np.int64), *(b[1] for b in bins)]).astype(np.int64),
        channel_offsets=_offsets([len(c[0]) for c in channels]),
        channel_zero_frac=np.concatenate([np.empty(0, np.float32), *(c[0] for c in channels)]),
        channel_mean=np.concatenate([np.empty(0, np.float32), *(c[1] for c in channels)]),
    )


def _row(array: NDArray[Any]) -> tuple[dict[str, float], tuple[NDArray[Any], NDArray[Any]]]:
    values = array.astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    n = len(finite)
    nan = float("nan")
    facts = {
        "count": len(values),
        "nan_count": int(np.isnan(values).sum()),
        "pos_inf_count": int((values == np.inf).sum()),
        "neg_inf_count": int((values == -np.inf).sum()),
        "zero_count": int((values == 0).sum()),
        "min": finite.min() if n else nan,
        "max": finite.max() if n else nan,
        "mean": finite.mean() if n else nan,
        "std": finite.std() if n else nan,
        "l1": np.abs(finite).sum() if n else nan,
        "l2": np.sqrt((finite**2).sum()) if n else nan,
    }
    bits = finite[finite != 0].astype(np.float32).view(np.uint32) >> 21
    return facts, np.unique(bits, return_counts=True)


def _channels(array: NDArray[Any], axis: int | None) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    if axis is None:
        return np.empty(0, np.float32), np.empty(0, np.float32)
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return (rows == 0).mean(axis=1).astype(np.float32), rows.mean(axis=1).astype(np.float32)


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
