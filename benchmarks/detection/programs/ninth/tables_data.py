"""Tables of the ninth set: columns that a few hidden causes move, and hills where two of them lie right."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["chances", "classes", "counts", "curves", "grades", "measures"]


def _table(random: np.random.Generator, rows: int, numbers: int, flags: int) -> np.ndarray:
    """Standardised numbers (a third lies between bounds, a third is skewed), and flags that go with them."""
    causes = random.normal(size=(rows, 4))
    x = causes @ random.normal(size=(4, numbers + flags)) / 2.5 + random.normal(size=(rows, numbers + flags))
    x, flag = x[:, :numbers], x[:, numbers:] > random.normal(size=flags)
    x[:, ::3] = 1 / (1 + np.exp(-1.5 * x[:, ::3]))
    x[:, 1::3] = np.log1p(np.exp(1.5 * x[:, 1::3]))
    return np.column_stack([scaled(x), flag])


def _answers(random: np.random.Generator, x: np.ndarray, outputs: int, hills: int) -> np.ndarray:
    """Standardised sums of hills over pairs of columns, and of a line: (rows, outputs)."""
    pair = np.stack([random.choice(x.shape[1], 2, replace=False) for _ in range(hills)])
    away = x[:, pair] - random.normal(0, 0.8, (hills, 2))
    high = np.exp(-0.5 * (away**2).sum(2))
    found = 1.5 * scaled(high) @ random.normal(size=(hills, outputs)) / np.sqrt(max(hills, 1))
    return scaled(found + x @ random.normal(size=(x.shape[1], outputs)) / np.sqrt(x.shape[1]))


@cache
def classes(
    seed: int, rows: int, numbers: int, count: int, flags: int = 0, noise: float = 0.12, hills: int = 6
) -> Split:
    """Which of several? The answer that is the largest, some by chance."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, flags)
    score = _answers(random, x, count, hills) + noise * random.gumbel(size=(rows, count))
    return split(floats(x), torch.tensor(score.argmax(1)), seed=seed)


@cache
def chances(
    seed: int, rows: int, numbers: int, flags: int = 0, outputs: int = 1, share: float = 0.5,
    sure: float = 4.0, hills: int = 6,
) -> Split:  # fmt: skip
    """Yes or no, of one thing or of several (N x outputs)? A share of the rows is a yes."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, flags)
    score = _answers(random, x, outputs, hills) + random.logistic(size=(rows, outputs)) / sure
    return split(floats(x), floats(score > np.quantile(score, 1 - share, axis=0)), seed=seed)


@cache
def grades(seed: int, rows: int, numbers: int, count: int, flags: int = 0, noise: float = 0.2) -> Split:
    """Which grade, the lowest being 0? As many rows of each."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, flags)
    score = _answers(random, x, 1, 6)[:, 0] + noise * random.normal(size=rows)
    bounds = np.quantile(score, np.linspace(0, 1, count + 1)[1:-1])
    return split(floats(x), torch.tensor(np.searchsorted(bounds, score)), seed=seed)


@cache
def measures(
    seed: int, rows: int, numbers: int, flags: int = 0, outputs: int = 1, noise: float = 0.25,
    uneven: float = 0.0, hills: int = 6,
) -> Split:  # fmt: skip
    """How much (N x outputs)? Standardised; `uneven`: how far the noise depends on the first column."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, flags)
    spread = noise * np.exp(uneven * x[:, :1])
    y = _answers(random, x, outputs, hills) + spread * random.normal(size=(rows, outputs))
    return split(floats(x), floats(scaled(y)), seed=seed)


@cache
def counts(seed: int, rows: int, numbers: int, flags: int = 0, alike: float = 6.0) -> Split:
    """How many (N x 1)? Around six; they vary more than by chance alone (negative binomial)."""
    random = np.random.default_rng(seed)
    x = _table(random, rows, numbers, flags)
    mean = np.exp(1.8 + 0.7 * _answers(random, x, 1, 5))
    return split(floats(x), floats(random.poisson(random.gamma(alike, mean / alike))), seed=seed)


@cache
def curves(seed: int, rows: int, count: int, noise: float, points: int = 48) -> Split:
    """Which machine shook so? Two tones (N x 1 x points) that begin somewhere and die away."""
    random = np.random.default_rng(900)
    tone, fades = random.uniform(0.25, 1.6, (8, 2)), random.uniform(4, 18, 8)
    random = np.random.default_rng(seed)
    label, t = random.integers(0, count, rows), np.arange(points)
    since = t - random.uniform(0, 12, (rows, 1))
    turn = tone[label][:, :, None] * since[:, None] * random.normal(1, 0.03, (rows, 1, 1))
    wave = np.sin(turn + random.uniform(0, 6, (rows, 2, 1))).sum(1)
    x = wave * np.exp(-np.maximum(since, 0) / fades[label][:, None]) * (since > 0)
    x = x * random.uniform(0.7, 1.4, (rows, 1)) + noise * random.normal(size=x.shape)
    return split(floats(x / x.std())[:, None], torch.tensor(label), seed=seed)
