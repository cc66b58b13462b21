"""Tables of the seventh set: groups of rows that lie together, and answers that bend with their columns."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["grouped", "likely", "repeated", "sized", "smooth", "spectra"]


def _columns(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Some columns even, some skewed, some counts, and each hangs on the one before; standardised."""
    x = random.normal(size=(rows, columns))
    x[:, 1:] += 0.5 * x[:, :-1]
    x[:, ::4] = np.log1p(np.exp(2 * x[:, ::4]))
    x[:, 3::4] = np.round(2 * x[:, 3::4])
    return scaled(x)


def _bent(random: np.random.Generator, x: np.ndarray, outputs: int) -> np.ndarray:
    """Waves along some directions, products of columns and a line, standardised: (rows, outputs)."""
    width = x.shape[1]
    waves = np.sin(x @ random.normal(size=(width, 8)) / np.sqrt(width) + random.uniform(0, 6, 8))
    first, other = random.integers(0, width, (2, 4))
    found = np.column_stack([1.2 * waves, 0.5 * x[:, first] * x[:, other], x / np.sqrt(width) * 1.5])
    return scaled(found @ random.normal(size=(found.shape[1], outputs)))


@cache
def grouped(seed: int, rows: int, columns: int, count: int, each: int = 2, apart: float = 1.3) -> Split:
    """Which of several? Each answer has some places of six hidden numbers that its rows lie around."""
    random = np.random.default_rng(seed)
    label, place = random.integers(0, count, rows), random.integers(0, each, rows)
    hidden = apart * random.normal(size=(count, each, 6))[label, place] + 0.8 * random.normal(size=(rows, 6))
    x = hidden @ random.normal(size=(6, columns)) / 2 + np.tanh(hidden @ random.normal(size=(6, columns)))
    x[:, ::5] = np.exp(0.3 * x[:, ::5])
    return split(floats(scaled(x + 0.6 * random.normal(size=x.shape))), torch.tensor(label), seed=seed)


@cache
def smooth(seed: int, rows: int, columns: int, outputs: int = 1, noise: float = 0.25) -> Split:
    """How much? Standardised."""
    random = np.random.default_rng(seed)
    x = _columns(random, rows, columns)
    y = _bent(random, x, outputs) + noise * random.normal(size=(rows, outputs))
    return split(floats(x), floats(scaled(y)), seed=seed)


@cache
def likely(
    seed: int, rows: int, columns: int, levels: tuple[int, ...] = (), share: float = 0.5, sure: float = 3.0
) -> Split:
    """Yes or no (N x 1)? Columns of numbers, then columns that hold the number of a level."""
    random = np.random.default_rng(seed)
    x = _columns(random, rows, columns)
    score = _bent(random, x, 1)[:, 0]
    kinds = [random.integers(0, count, rows) for count in levels]
    score += (
        sum(0.7 * random.normal(size=count)[kind] for count, kind in zip(levels, kinds, strict=True))
        + random.logistic(size=rows) / sure
    )
    y = score > np.quantile(score, 1 - share)
    return split(floats(np.column_stack([x, *kinds])), floats(y)[:, None], seed=seed)


@cache
def sized(seed: int, rows: int, columns: int) -> Split:
    """How large is a claim? Amounts above zero, whose spread grows with their mean."""
    random = np.random.default_rng(seed)
    x = _columns(random, rows, columns)
    mean = np.exp(0.7 * _bent(random, x, 1))
    return split(floats(x), floats(random.gamma(6.0, mean / 6.0)), seed=seed)


def repeated(found: Split, times: int) -> Split:
    """Yes and no as classes; each row of a yes comes several times, a little changed, to learn from."""
    (x, y), (held_x, held_y) = ((x, y[:, 0].long()) for x, y in found)
    rare = torch.nonzero(y == 1).flatten().repeat(times - 1)
    noise = 0.1 * torch.randn(len(rare), x.shape[1], generator=torch.Generator().manual_seed(times))
    return (torch.cat([x, x[rare] + noise]), torch.cat([y, y[rare]])), (held_x, held_y)


@cache
def spectra(seed: int, rows: int = 2000, points: int = 64, noise: float = 0.05) -> Split:
    """Which of five powders is it? The peaks of its curve, shifted, wider and of all strengths."""
    random = np.random.default_rng(700)
    peaks, high = random.uniform(4, points - 4, (5, 5)), random.uniform(0.3, 1.0, (5, 5))
    random = np.random.default_rng(seed)
    label, t = random.integers(0, 5, rows), np.arange(points)
    at = peaks[label] + random.normal(size=(rows, 1)) + 0.4 * random.normal(size=(rows, 5))
    tall = high[label] * random.uniform(0.5, 1.5, (rows, 5))
    wide = random.uniform(1.5, 3.0, (rows, 1, 1))
    x = (tall[..., None] * np.exp(-(((t - at[..., None]) / wide) ** 2))).sum(1)
    x += noise * random.normal(size=x.shape)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(label), seed=seed)
