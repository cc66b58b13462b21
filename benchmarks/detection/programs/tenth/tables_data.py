"""Tables of the tenth set: columns that go with their neighbours, turns of a clock, kinds; bent ridges."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["amounts", "costs", "flags", "grades", "kinds"]

Made = tuple[np.random.Generator, np.ndarray, np.ndarray]


def _made(seed: int, rows: int, shape: tuple[int, int, int], outputs: int, ridges: int) -> Made:
    """Chance, columns, and standardised answers (rows x outputs).

    `shape`: how many numbers (a quarter is even between bounds, a quarter skewed), clocks (each a sine and a
    cosine), and levels of one kind (each a flag; the first are the most frequent).
    """
    random = np.random.default_rng(seed)
    numbers, clocks, levels = shape
    x = random.normal(size=(rows, numbers))
    for place in range(1, numbers):
        x[:, place] = 0.5 * x[:, place - 1] + 0.87 * x[:, place]
    x[:, ::4] = x[:, ::4].argsort(0).argsort(0)
    x[:, 2::4] = np.exp(0.4 * x[:, 2::4])
    turn = random.uniform(0, 2 * np.pi, (rows, clocks))
    share = 1 / np.arange(2, levels + 2)
    kind = random.choice(levels, (rows, 1), p=share / share.sum()) if levels else np.zeros((rows, 1))
    level = kind == np.arange(levels)
    x = np.column_stack([scaled(x), 1.4 * np.sin(turn), 1.4 * np.cos(turn), level])
    three = np.stack([random.choice(x.shape[1], 3, replace=False) for _ in range(ridges)])
    along = (x[:, three] * random.normal(size=(ridges, 3))).sum(2) - random.normal(0, 0.5, ridges)
    bent = scaled(np.tanh(1.2 * along)) @ random.normal(size=(ridges, outputs)) / np.sqrt(ridges)
    even = x @ random.normal(size=(x.shape[1], outputs)) / np.sqrt(x.shape[1])
    return random, x, scaled(1.3 * bent + even)


@cache
def kinds(
    seed: int, rows: int, shape: tuple[int, int, int], count: int, noise: float = 0.1, ridges: int = 8
) -> Split:
    """Which of several? The answer that is the largest, some by chance."""
    random, x, score = _made(seed, rows, shape, count, ridges)
    told = (score + noise * random.gumbel(size=score.shape)).argmax(1)
    return split(floats(x), torch.tensor(told), seed=seed)


@cache
def flags(
    seed: int, rows: int, shape: tuple[int, int, int], outputs: int = 1, share: float = 0.5,
    noise: float = 0.2, ridges: int = 8,
) -> Split:  # fmt: skip
    """Yes or no, of one thing or of several (N x outputs)? A share of the rows is a yes."""
    random, x, score = _made(seed, rows, shape, outputs, ridges)
    score = score + noise * random.normal(size=score.shape)
    return split(floats(x), floats(score > np.quantile(score, 1 - share, axis=0)), seed=seed)


@cache
def grades(seed: int, rows: int, shape: tuple[int, int, int], count: int, noise: float = 0.15) -> Split:
    """Which grade, the lowest being 0? The middle ones are the most frequent."""
    random, x, score = _made(seed, rows, shape, 1, 8)
    score = score[:, 0] + noise * random.normal(size=rows)
    return split(floats(x), torch.tensor(np.digitize(score, np.linspace(-1.2, 1.2, count - 1))), seed=seed)


@cache
def amounts(
    seed: int, rows: int, shape: tuple[int, int, int], outputs: int = 1, noise: float = 0.2,
    tails: float = 30, ridges: int = 8,
) -> Split:  # fmt: skip
    """How much (N x outputs)? Standardised; the fewer `tails` (degrees of freedom), the more are far off."""
    random, x, score = _made(seed, rows, shape, outputs, ridges)
    return split(
        floats(x), floats(scaled(score + noise * random.standard_t(tails, size=score.shape))), seed=seed
    )


@cache
def costs(seed: int, rows: int, shape: tuple[int, int, int], sure: float = 8.0) -> Split:
    """How dear (N x 1)? Above zero, around 1; the spread grows with the mean (gamma)."""
    random, x, score = _made(seed, rows, shape, 1, 6)
    return split(floats(x), floats(random.gamma(sure, np.exp(0.6 * score) / sure)), seed=seed)
