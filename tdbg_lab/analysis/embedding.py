"""Points of a high-dimensional space in two dimensions, such that pictures of different steps compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Points", "align", "finite_rows", "pca", "pick_rows", "tsne"]

SEED = 20
_EXACT_DIMS = 256


@dataclass(frozen=True, slots=True)
class Points:
    """Rows that can be embedded."""

    rows: NDArray[np.int64]
    """Which rows of the tensor these are, shape ``(N,)``, ascending."""
    values: NDArray[np.float64]
    """Shape ``(N, D)``, finite."""
    dropped: int
    """Rows left out because they hold a NaN or an infinity."""


def pick_rows(n: int, most: int) -> NDArray[np.int64]:
    """At most `most` of `n` rows, always the same ones for the same `n`, ascending."""
    if n <= most:
        return np.arange(n, dtype=np.int64)
    return np.sort(np.random.default_rng(SEED).permutation(n)[:most]).astype(np.int64)


def finite_rows(z: NDArray[np.floating], rows: NDArray[np.int64] | None = None) -> Points:
    """Rows of `z` as points; all but the first dimension are flattened.

    Parameters
    ----------
    z
        Shape ``(N, ...)``, any real dtype. A 1-d array is N points on a line.
    rows
        Which rows to take; None takes all.
    """
    flat = np.asarray(z).reshape(len(z), -1) if np.ndim(z) > 0 else np.asarray(z).reshape(1, 1)
    rows = np.arange(len(flat), dtype=np.int64) if rows is None else rows
    values = flat[rows].astype(np.float64)
    good = np.isfinite(values).all(axis=1)
    return Points(rows=rows[good], values=values[good], dropped=int((~good).sum()))


def pca(z: NDArray[np.float64], dims: int = 2) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal components.

    Deterministic: the sign of each component makes its largest loading positive.

    Parameters
    ----------
    z
        Finite, shape ``(N, D)``.
    dims
        How many components; those that do not exist are zero.

    Returns
    -------
    Coordinates ``(N, dims)``, and the share of variance of each, 0 to 1, ``(dims,)``.
    """
    n, width = z.shape
    coordinates, shares = np.zeros((n, dims)), np.zeros(dims)
    if n < 2 or width == 0:
        return coordinates, shares
    largest = np.abs(z).max()
    centred = z / (
        largest if largest > 0 else 1.0
    )  # values near the end of float64 must not overflow when squared
    centred = centred - centred.mean(axis=0)
    total = float(np.square(centred).sum())
    if total <= 0:
        return coordinates, shares
    axes = _axes(centred, min(dims, n, width))
    largest_at = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest_at, np.arange(axes.shape[1])])
    found = centred @ axes
    coordinates[:, : found.shape[1]] = found * (largest if largest > 0 else 1.0)
    shares[: found.shape[1]] = np.square(found).sum(axis=0) / total
    return coordinates, shares


def align(moving: NDArray[np.float64], fixed: NDArray[np.float64]) -> NDArray[np.float64]:
    """`moving` turned or mirrored (not stretched) about its centre so that it lies best on `fixed`.

    Row ``i`` of both is the same point. Shape ``(N, d)`` each.
    """
    if len(moving) < 2:
        return moving
    centre = moving.mean(axis=0)
    left, _, right = np.linalg.svd((moving - centre).T @ (fixed - fixed.mean(axis=0)))
    return np.asarray((moving - centre) @ (left @ right) + centre)


def tsne(
    z: NDArray[np.float64],
    *,
    init: NDArray[np.float64] | None = None,
    iterations: int | None = None,
    perplexity: float = 30.0,
    progress: Callable[[float], bool] | None = None,
) -> NDArray[np.float64]:
    """A t-SNE embedding in two dimensions (openTSNE), deterministic on one machine.

    Parameters
    ----------
    z
        Finite, shape ``(N, D)``.
    init
        Where each point was before, shape ``(N, 2)``: starts there, without early exaggeration, so that
        the same point stays in the same place while the space moves slowly. None: starts from PCA.
    iterations
        Default 500, and 120 from an `init`.
    perplexity
        Lowered by itself when there are few points.
    progress
        Called with the share done, 0 to 1; answering False ends early with what there is.

    Returns
    -------
    Shape ``(N, 2)``.

    Raises
    ------
    MissingDependencyError
        When openTSNE is not installed.
    """
    n = len(z)
    if n < 4:
        return pca(z, 2)[0]
    try:
        from openTSNE import TSNEEmbedding, affinity, initialization
    except ImportError as error:
        raise MissingDependencyError("t-SNE needs openTSNE: pip install openTSNE") from error

    reduced = pca(z, 50)[0] if z.shape[1] > 50 else z
    spread = float(reduced.std())
    reduced = reduced / (spread if spread > 0 else 1.0)
    links = affinity.PerplexityBasedNN(
        reduced,
        perplexity=min(perplexity, (n - 1) / 3),
        method="exact" if n < 1000 else "annoy",
        n_jobs=1,
        random_state=SEED,
    )
    warm = init is not None
    total = iterations if iterations is not None else (120 if warm else 500)
    # a warm start keeps its scale: shrinking it would let the clusters fall back into other places
    start = init.copy() if init is not None else initialization.rescale(pca(reduced, 2)[0])
    watch = _Watch(progress, total)
    embedding = TSNEEmbedding(
        start,
        links,
        negative_gradient_method="bh" if n < 2000 else "fft",
        n_jobs=1,
        random_state=SEED,
        callbacks=[watch],
        callbacks_every_iters=10,
    )
    if not warm:
        watch.offset = 0
        early = min(total // 2, 150)
        embedding = embedding.optimize(n_iter=early, exaggeration=12, momentum=0.5, propagate_exception=False)
        watch.offset = early
        total -= early
    embedding = embedding.optimize(n_iter=total, momentum=0.8, propagate_exception=False)
    return np.asarray(embedding, dtype=np.float64)


class _Watch:
    """openTSNE's callback: passes on the share done; answers True to stop."""

    def __init__(self, progress: Callable[[float], bool] | None, total: int) -> None:
        self.progress = progress
        self.total = total
        self.offset = 0

    def __call__(self, iteration: int, _error: float, _embedding: object) -> bool:
        if self.progress is None:
            return False
        return not self.progress(min((self.offset + iteration) / self.total, 1.0))


def _axes(centred: NDArray[np.float64], dims: int) -> NDArray[np.float64]:
    """The first `dims` principal directions as columns, shape ``(D, dims)``."""
    n, width = centred.shape
    if width <= _EXACT_DIMS:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        return np.asarray(vectors[:, ::-1][:, :dims])
    if n <= _EXACT_DIMS:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        values, vectors = values[::-1][:dims], vectors[:, ::-1][:, :dims]
        return np.asarray(centred.T @ vectors / np.sqrt(np.maximum(values, 1e-300)))
    # both sides are large: a seeded random sketch, sharpened by two power iterations
    sketch = np.random.default_rng(SEED).standard_normal((width, min(dims + 10, n, width)))
    basis = sketch
    for _ in range(3):
        basis, _ = np.linalg.qr(centred.T @ (centred @ basis))
    _, _, right = np.linalg.svd(centred @ basis, full_matrices=False)
    return np.asarray(basis @ right.T[:, :dims])
