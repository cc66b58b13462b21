"""Motors that are heard, reviews, turbines and spectra: what Keras is given in the ninth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["motors", "reviews", "spectra", "texts", "turbines"]


@cache
def motors(seed: int, rows: int = 3000, length: int = 48, noise: float = 0.5) -> Split:
    """What ails the motor? Nothing, imbalance, knocks, a beat, or a squeal, by two sensors: (N, L, 2)."""
    random = np.random.default_rng(seed)
    label, time = random.integers(0, 5, rows), np.arange(length)
    turn = 2 * np.pi * random.uniform(0.06, 0.1, (rows, 1)) * time + random.uniform(0, 6.28, (rows, 1))
    plain = np.sin(turn)
    ails = [0 * plain, 1.2 * plain, 2.5 * (np.sin(2 * turn + 1) > 0.93), plain * np.sin(0.25 * turn),
            0.8 * np.sin(5.3 * turn)]  # fmt: skip
    heard = np.choose(label[:, None], ails) * random.uniform(0.6, 1.2, (rows, 1))
    x = np.stack([plain + heard, 0.6 * np.cos(turn) + np.roll(heard, 2, 1)], 2)
    x = x + noise * random.normal(size=x.shape)
    return split(floats((x - x.mean((0, 1))) / x.std((0, 1))), torch.tensor(label), seed=seed)


@cache
def texts(seed: int, rows: int, kinds: int, sure: float, words: int = 300, length: int = 20) -> Split:
    """Words (0 pads) and of which kind the text is; some words are likelier in texts of a kind."""
    random = np.random.default_rng(seed)
    lean = random.normal(size=(kinds, words)) * (random.random(words) < 0.4)
    chance = np.exp(sure * (lean - lean.mean(0))) / (5 + np.arange(words))
    chance /= chance.sum(1, keepdims=True)
    y, x = random.integers(0, kinds, rows), np.zeros((rows, length), np.int64)
    for row in range(rows):
        count = int(random.integers(length // 2, length + 1))
        x[row, :count] = 1 + random.choice(words, count, p=chance[y[row]])
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def reviews(seed: int, rows: int, sure: float) -> Split:
    """Words, and whether the writer was pleased (N x 1)."""
    return tuple((x, y[:, None].float()) for x, y in texts(seed, rows, 2, sure))


@cache
def turbines(seed: int, rows: int = 2600, length: int = 12) -> Split:
    """Wind, pitch of the blades and power of the last hours, (N, L, 3), and the power to come (N, 1)."""
    random = np.random.default_rng(seed)
    span, wind = length + 1, np.empty((rows, length + 1))
    wind[:, 0] = random.normal(size=rows)
    for at in range(1, span):
        wind[:, at] = 0.9 * wind[:, at - 1] + 0.44 * random.normal(size=rows)
    pitch = np.tanh(np.maximum(0, wind - 0.8)) + 0.1 * random.normal(size=wind.shape)
    power = np.tanh(1.2 * wind) * (1 - 0.4 * pitch)
    lagged = 0.6 * power[:, 1:] + 0.4 * power[:, :-1] + 0.05 * random.normal(size=(rows, length))
    x = np.stack([wind[:, 1:], pitch[:, 1:], np.roll(lagged, 1, 1)], 2)
    x[:, 0, 2] = power[:, 0]
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    return split(floats(x), floats(scaled(lagged[:, -1:])), seed=seed)


@cache
def spectra(seed: int, rows: int = 3000, bands: int = 40, parts: int = 5, noise: float = 0.1) -> Split:
    """Mixtures of some substances, each with peaks of its own, and the same again (standardised)."""
    random, line = np.random.default_rng(seed), np.linspace(0, 1, bands)
    pure = sum(np.exp(-(((line - random.random((parts, 1))) / 0.05) ** 2)) for _ in range(3))
    share = random.dirichlet(np.ones(parts), rows)
    x = np.log1p(3 * share @ pure) + noise * 0.1 * random.normal(size=(rows, bands))
    x = floats((x - x.mean()) / x.std())
    return split(x, x, seed=seed)
