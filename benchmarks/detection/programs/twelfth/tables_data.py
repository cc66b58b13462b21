"""Tables of the twelfth set: columns that hang on their neighbours, products of two of them, and waves."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["amounts", "counts", "grades", "kinds", "yes_no"]

Shape = tuple[int, ...]
"""How many numbers, and how many levels each kind of thing has (its codes are the last columns)."""


def _made(seed: int, rows: int, shape: Shape, outputs: int, meetings: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns, and standardised answers (rows x outputs).

    Each column hangs on the one before; of three one has two peaks, and of five one ends where its sensor
    does. Answers are a line, products of two columns, a few waves along lines, and a part of each level.
    """
    random = np.random.default_rng(seed)
    numbers, *levels = shape
    x = random.normal(size=(rows, numbers))
    for place in range(1, numbers):
        x[:, place] = 0.45 * x[:, place - 1] + 0.9 * x[:, place]
    x[:, 1::3] += np.sign(x[:, 1::3])
    x[:, 4::5] = x[:, 4::5].clip(-1.4, 1.4)
    x = scaled(x)
    first, second = random.integers(0, numbers, (2, meetings))
    products = np.tanh(x[:, first]) * x[:, second]
    waves = np.sin(1.2 * x @ random.normal(size=(numbers, 3)) / np.sqrt(numbers) * 2)
    score = scaled(x @ random.normal(size=(numbers, outputs)))
    score += 0.6 * scaled(products @ random.normal(size=(meetings, outputs)))
    score += 0.5 * scaled(waves @ random.normal(size=(3, outputs)))
    codes = [random.integers(0, count, rows) for count in levels]
    for code, count in zip(codes, levels, strict=True):
        score += 0.6 * random.normal(size=(count, outputs))[code]
    return np.column_stack([x, *codes]), scaled(score)


@cache
def kinds(seed: int, rows: int, shape: Shape, count: int, noise: float = 0.1, meetings: int = 5) -> Split:
    """Which of several? The answer that is the largest, some by chance."""
    x, score = _made(seed, rows, shape, count, meetings)
    told = score + noise * np.random.default_rng(seed + 1).gumbel(size=score.shape)
    return split(floats(x), torch.tensor(told.argmax(1)), seed=seed)


@cache
def yes_no(
    seed: int, rows: int, shape: Shape, outputs: int = 1, share: float = 0.5, noise: float = 0.2
) -> Split:  # fmt: skip
    """Yes or no, of one thing or of several (N x outputs)? A share of the rows is a yes."""
    x, score = _made(seed, rows, shape, outputs, 5)
    score = score + noise * np.random.default_rng(seed + 1).standard_t(5, size=score.shape)
    return split(floats(x), floats(score > np.quantile(score, 1 - share, axis=0)), seed=seed)


@cache
def grades(seed: int, rows: int, shape: Shape, count: int, noise: float = 0.15) -> Split:
    """Which grade, the lowest being 0? Those in the middle are the most frequent."""
    x, score = _made(seed, rows, shape, 1, 5)
    score = scaled(score + noise * np.random.default_rng(seed + 1).normal(size=score.shape))[:, 0]
    return split(floats(x), torch.tensor(np.digitize(score, np.linspace(-1, 1, count - 1))), seed=seed)


@cache
def amounts(
    seed: int, rows: int, shape: Shape, outputs: int = 1, noise: float = 0.2, meetings: int = 5
) -> Split:  # fmt: skip
    """How much (N x outputs)? Standardised."""
    x, score = _made(seed, rows, shape, outputs, meetings)
    score = score + noise * np.random.default_rng(seed + 1).standard_t(4, size=score.shape)
    return split(floats(x), floats(scaled(score)), seed=seed)


@cache
def counts(seed: int, rows: int, shape: Shape) -> Split:
    """How many (N x 1)? Around four, and up to forty."""
    x, score = _made(seed, rows, shape, 1, 4)
    drawn = np.random.default_rng(seed + 1).poisson(np.exp(1.3 + 0.6 * score))
    return split(floats(x), floats(drawn), seed=seed)
