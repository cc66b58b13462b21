"""Tables of the eleventh set: columns of a few hidden causes, and lines of which a soft choice is made."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["amounts", "arrivals", "kinds", "levels", "yes_no"]

Shape = tuple[int, ...]
"""How many numbers, and how many levels each kind of thing has (its codes are the last columns)."""


def _made(seed: int, rows: int, shape: Shape, outputs: int, regimes: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns, and standardised answers (rows x outputs).

    Of four numbers one is long-tailed to both sides and one is graded in halves. Which of the lines (the
    regimes) tells the answer is a soft choice by the columns; each level of a kind adds its own.
    """
    random = np.random.default_rng(seed)
    numbers, *levels = shape
    causes = random.normal(size=(rows, 5))
    x = 0.4 * causes @ random.normal(size=(5, numbers)) + random.normal(size=(rows, numbers))
    x[:, 1::4] = np.sign(x[:, 1::4]) * np.abs(x[:, 1::4]) ** 1.4
    x[:, 3::4] = np.round(2 * x[:, 3::4]) / 2
    x = scaled(x)
    choice = 2.5 * x @ random.normal(size=(numbers, regimes)) / np.sqrt(numbers)
    chosen = np.exp(choice - choice.max(1, keepdims=True))
    chosen /= chosen.sum(1, keepdims=True)
    lines = np.einsum("rn,nko->rko", x, random.normal(size=(numbers, regimes, outputs))) / np.sqrt(numbers)
    lines += 0.5 * random.normal(size=(regimes, outputs))
    score = (chosen[:, :, None] * lines).sum(1)
    codes = [random.integers(0, count, rows) for count in levels]
    for code, count in zip(codes, levels, strict=True):
        score += 0.5 * random.normal(size=(count, outputs))[code]
    return np.column_stack([x, *codes]), scaled(score)


@cache
def kinds(
    seed: int, rows: int, shape: Shape, count: int, noise: float = 0.1, regimes: int = 4
) -> Split:  # fmt: skip
    """Which of several? The answer that is the largest, some by chance."""
    x, score = _made(seed, rows, shape, count, regimes)
    told = score + noise * np.random.default_rng(seed + 1).gumbel(size=score.shape)
    return split(floats(x), torch.tensor(told.argmax(1)), seed=seed)


@cache
def yes_no(
    seed: int, rows: int, shape: Shape, outputs: int = 1, share: float = 0.5, noise: float = 0.2,
    regimes: int = 4,
) -> Split:  # fmt: skip
    """Yes or no, of one thing or of several (N x outputs)? A share of the rows is a yes."""
    x, score = _made(seed, rows, shape, outputs, regimes)
    score = score + noise * np.random.default_rng(seed + 1).normal(size=score.shape)
    return split(floats(x), floats(score > np.quantile(score, 1 - share, axis=0)), seed=seed)


@cache
def levels(seed: int, rows: int, shape: Shape, count: int, noise: float = 0.15) -> Split:
    """Which level, the lowest being 0? All are as frequent."""
    x, score = _made(seed, rows, shape, 1, 4)
    score = score[:, 0] + noise * np.random.default_rng(seed + 1).normal(size=rows)
    bounds = np.quantile(score, np.arange(1, count) / count)
    return split(floats(x), torch.tensor(np.digitize(score, bounds)), seed=seed)


@cache
def amounts(
    seed: int, rows: int, shape: Shape, outputs: int = 1, noise: float = 0.2, regimes: int = 4
) -> Split:  # fmt: skip
    """How much (N x outputs)? Standardised."""
    x, score = _made(seed, rows, shape, outputs, regimes)
    score = score + noise * np.random.default_rng(seed + 1).logistic(size=score.shape)
    return split(floats(x), floats(scaled(score)), seed=seed)


@cache
def arrivals(seed: int, rows: int, shape: Shape) -> Split:
    """How many (N x 1)? Around three, and up to thirty."""
    x, score = _made(seed, rows, shape, 1, 3)
    return split(
        floats(x), floats(np.random.default_rng(seed + 1).poisson(np.exp(1 + 0.7 * score))), seed=seed
    )
