"""Fewer points, same picture: the smallest and largest value of each bucket, and all that is not finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["evenly", "min_max", "spaced"]


def min_max(
    values: NDArray[np.float64], n_out: int, *, x: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Indices of the points to draw.

    Deterministic. The first and the last point, every NaN and every infinity are always among them:
    those are the finding.

    Parameters
    ----------
    values
        Shape ``(N,)``, in the order in which they are drawn.
    n_out
        How many finite points to keep, at least 4. Never more than this, apart from the neighbours
        of nothing: what is not finite comes on top, at most `n_out` runs of it (first and last of each
        run when there are more).
    x
        Positions, shape ``(N,)``, ascending. Buckets are equally wide in `x`; without it, equally full.

    Returns
    -------
    Ascending indices, int64.

    Raises
    ------
    ValueError
        When `n_out` is below 4.
    """
    if n_out < 4:
        raise ValueError(f"n_out must be at least 4, not {n_out}")
    n = len(values)
    if n <= n_out:
        return np.arange(n, dtype=np.int64)
    finite = np.isfinite(values)
    kept = [np.array([0, n - 1], dtype=np.int64), _not_finite(values, finite, n_out)]
    inner = np.flatnonzero(finite)
    if len(inner):
        kept.append(_extremes(values, inner, (n_out - 2) // 2, x))
    return np.unique(np.concatenate(kept))


def evenly(n: int, n_out: int) -> NDArray[np.int64]:
    """`n_out` of `n` indices, evenly, the first and the last among them."""
    if n <= n_out:
        return np.arange(n, dtype=np.int64)
    if n_out == 1:
        return np.array([n - 1], dtype=np.int64)
    return np.unique(np.round(np.linspace(0, n - 1, n_out)).astype(np.int64))


def _extremes(
    values: NDArray[np.float64], inner: NDArray[np.int64], buckets: int, x: NDArray[np.float64] | None
) -> NDArray[np.int64]:
    """Index of the smallest and the largest value in each bucket."""
    everything = len(inner) == len(values)
    own = values if everything else values[inner]
    where = inner if x is None else np.asarray(x, dtype=np.float64)[slice(None) if everything else inner]
    span = float(where[-1]) - float(where[0])
    edges = where[0] + span / buckets * np.arange(buckets)
    first = np.unique(np.searchsorted(where, edges)) if span > 0 else np.zeros(1, dtype=np.int64)
    first = first[first < len(own)]
    lengths = np.diff(first, append=len(own))
    found = []
    for ufunc in (np.minimum, np.maximum):
        hits = np.flatnonzero(own == np.repeat(ufunc.reduceat(own, first), lengths))
        found.append(hits[np.diff(np.searchsorted(first, hits, side="right"), prepend=0) > 0])
    return np.asarray(inner[np.concatenate(found)])


def _not_finite(values: NDArray[np.float64], finite: NDArray[np.bool_], n_out: int) -> NDArray[np.int64]:
    """Indices of NaN and infinities; of long runs of the same kind only both ends, when there are many."""
    bad = np.flatnonzero(~finite)
    if len(bad) <= n_out:
        return bad
    kind = np.where(np.isnan(values[bad]), 0.0, np.where(values[bad] > 0, 1.0, -1.0))
    new = np.concatenate(([True], (np.diff(bad) > 1) | (np.diff(kind) != 0)))
    end = np.concatenate((new[1:], [True]))
    return bad[new | end]


def spaced(n: int, n_out: int) -> NDArray[np.int64]:
    """At most `n_out` of `n` indices, equally far apart, the last among them: columns of a heat map.

    Plotly paints columns of one width as one small image, others cell by cell, which takes ten times as long.
    """
    stride = max(-(-n // max(n_out, 1)), 1)
    return np.arange((n - 1) % stride, n, stride, dtype=np.int64)
