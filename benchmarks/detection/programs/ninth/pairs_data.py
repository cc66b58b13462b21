"""Podcasts, hotels, rents and signatures of the ninth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["hotels", "podcasts", "rents", "signatures"]


@cache
def podcasts(listeners: int, count: int, seed: int, rows: int = 14000, shown: int = 6) -> Split:
    """A listener and some podcasts that were shown, and the place of the one that was taken."""
    random = np.random.default_rng(seed)
    taste, made = random.normal(size=(listeners, 3)), random.normal(size=(count, 3))
    known, who = 0.7 * random.normal(size=count), random.integers(0, listeners, rows)
    what = np.argsort(random.random((rows, count)), 1)[:, :shown]
    pull = 1.5 * np.einsum("ik,ijk->ij", taste[who], made[what]) + known[what]
    y = (pull + random.gumbel(size=pull.shape)).argmax(1)
    return split(torch.tensor(np.column_stack([who, what])), torch.tensor(y), seed=seed)


@cache
def rents(sizes: tuple[int, ...], seed: int, rows: int = 7000) -> Split:
    """Quarter, kind of house and agent, numbered through, size and age; and the rent (standardised)."""
    random = np.random.default_rng(seed)
    kinds = np.stack([random.integers(0, size, rows) for size in sizes], 1)
    numbers, (place, house, agent) = random.normal(size=(rows, 2)), (
        random.normal(size=(size, 2))[kinds[:, at]] for at, size in enumerate(sizes)
    )  # fmt: skip
    y = place[:, 0] + 0.5 * (place * house).sum(1) + (1 + 0.5 * place[:, 1]) * numbers[:, 0]
    y = y - 0.5 * np.tanh(numbers[:, 1]) * house[:, 0] + 0.3 * agent[:, 0] + 0.3 * random.normal(size=rows)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return split(floats(np.column_stack([kinds + first, numbers])), floats(scaled(y[:, None])), seed=seed)


@cache
def hotels(sizes: tuple[int, ...], seed: int, rows: int = 9000) -> Split:
    """The same of towns, chains and devices, nights and price, and whether it was booked."""
    random = torch.Generator().manual_seed(seed)
    return tuple((x, (y + 0.5 * torch.randn(y.shape, generator=random) > 0).float())
                 for x, y in rents(sizes, seed, rows))  # fmt: skip


@cache
def signatures(writers: int, strokes: int, seed: int, rows: int = 6000) -> Split:
    """Two signatures side by side, N x 2 * strokes, and whether one hand wrote both (N x 1)."""
    random = np.random.default_rng(seed)
    hand, way = random.normal(size=(writers, 6)), random.normal(size=(6, strokes))

    def written(who: np.ndarray) -> np.ndarray:
        moved = hand[who] + 0.35 * random.normal(size=(rows, 6))
        return np.tanh(0.7 * moved @ way) + 0.2 * random.normal(size=(rows, strokes))

    one, same = random.integers(0, writers, rows), random.random(rows) < 0.5
    other = np.where(same, one, (one + random.integers(1, writers, rows)) % writers)
    x = scaled(np.column_stack([written(one), written(other)]))
    return split(floats(x), floats(same[:, None]), seed=seed)
