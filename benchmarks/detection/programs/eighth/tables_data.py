"""Tables of the eighth set: bends of single columns, steps where two of them meet, and levels of a kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["as_classes", "cases", "readings", "sorts", "tallies"]


def _table(random: np.random.Generator, rows: int, numbers: int, levels: int) -> np.ndarray:
    """Standardised numbers (of three, one is a duration and one a count) and flags for each level."""
    x = random.normal(size=(rows, numbers)) + 0.6 * random.normal(size=(rows, 1))
    x[:, 1::3] = np.sqrt(random.gamma(2.0, 1.0, x[:, 1::3].shape)) + 0.3 * x[:, 1::3]
    x[:, 2::3] = np.log1p(random.poisson(np.exp(0.5 * x[:, 2::3] + 1.0)))
    flags = np.eye(levels)[random.integers(0, levels, rows)] if levels else np.empty((rows, 0))
    return np.column_stack([scaled(x), flags])


def _answers(random: np.random.Generator, x: np.ndarray, outputs: int, meetings: int = 4) -> np.ndarray:
    """Standardised sums of a bend of each column, and of steps where two are high: (rows, outputs)."""
    width = x.shape[1]
    bends = np.where(
        random.random(width) < 0.5, np.tanh(1.5 * x - random.normal(size=width)), np.maximum(0, x)
    )
    pairs = random.integers(0, width, (2, meetings))
    meet = 1 / (1 + np.exp(-4 * np.minimum(x[:, pairs[0]], x[:, pairs[1]])))
    found = scaled(np.column_stack([bends, x])) @ random.normal(size=(2 * width, outputs)) / np.sqrt(width)
    return scaled(found + 1.5 * meet @ random.normal(size=(meetings, outputs)))


@cache
def sorts(
    seed: int, rows: int, numbers: int, count: int, levels: int = 0, noise: float = 0.12, bent: int = 4
) -> Split:
    """Which of several? The answer that is the largest, some by chance."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, levels)
    score = _answers(random, x, count, bent) + noise * random.gumbel(size=(rows, count))
    return split(floats(x), torch.tensor(score.argmax(1)), seed=seed)


@cache
def cases(
    seed: int, rows: int, numbers: int, levels: int = 0, outputs: int = 1, share: float = 0.5,
    sure: float = 4.0,
) -> Split:  # fmt: skip
    """Yes or no, of one thing or of several (N x outputs)? A share of the rows is a yes."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, levels)
    score = _answers(random, x, outputs) + random.logistic(size=(rows, outputs)) / sure
    return split(floats(x), floats(score > np.quantile(score, 1 - share, axis=0)), seed=seed)


@cache
def readings(
    seed: int, rows: int, numbers: int, levels: int = 0, outputs: int = 1, noise: float = 0.25, bent: int = 4
) -> Split:
    """How much, once or several times? Standardised."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, levels)
    y = _answers(random, x, outputs, bent) + noise * random.laplace(size=(rows, outputs))
    return split(floats(x), floats(scaled(y)), seed=seed)


@cache
def tallies(seed: int, rows: int, numbers: int, levels: int = 0) -> Split:
    """How many (N x 1)? Around five, and up to fifty."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, levels)
    mean = np.exp(1.6 + 0.6 * _answers(random, x, 1))
    return split(floats(x), floats(random.poisson(mean)), seed=seed)


def as_classes(found: Split) -> Split:
    """Yes and no in a column as classes 1 and 0."""
    return tuple((x, y[:, 0].long()) for x, y in found)
