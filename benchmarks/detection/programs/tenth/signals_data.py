"""Steps that are walked, ovens, plants, books and coupons of the tenth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn import datasets

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["books", "coupons", "gaits", "main_parts", "ovens", "plants", "walked"]


@cache
def walked(seed: int, rows: int = 3400, length: int = 40, noise: float = 0.6) -> Split:
    """Standing, walking, running, climbing or cycling, by three accelerations: (N, L, 3)."""
    random = np.random.default_rng(seed)
    label, time = random.integers(0, 5, rows), np.arange(length)
    pace = np.array([0.09, 0.09, 0.15, 0.07, 0.12])[label] * random.uniform(0.85, 1.15, rows)
    turn = 2 * np.pi * pace[:, None] * time + random.uniform(0, 6.28, (rows, 1))
    up = np.array([0.0, 0.9, 1.4, 0.8, 0.4])[label][:, None] * np.sin(2 * turn)
    side = np.array([0.1, 0.5, 0.4, 0.9, 0.9])[label][:, None] * np.sin(turn)
    ahead = np.array([0.0, 0.6, 1.2, 0.3, 0.2])[label][:, None] * np.maximum(0, np.cos(2 * turn + 0.5))
    x = np.stack([up, side, ahead], 2) * random.uniform(0.6, 1.3, (rows, 1, 1))
    x = x + noise * random.normal(size=x.shape)
    return split(floats((x - x.mean((0, 1))) / x.std((0, 1))), torch.tensor(label), seed=seed)


@cache
def ovens(seed: int, rows: int = 2800, length: int = 14) -> Split:
    """Heat, room and oven of the last minutes, (N, L, 3), and the oven's temperature to come (N, 1)."""
    random = np.random.default_rng(seed)
    heat = (random.random((rows, length + 1)) < random.uniform(0.2, 0.8, (rows, 1))).astype(float)
    room = random.normal(size=(rows, 1)) + 0.2 * random.normal(size=heat.shape).cumsum(1)
    oven = np.zeros_like(heat)
    oven[:, 0] = random.normal(size=rows)
    for at in range(1, length + 1):
        before = heat[:, max(0, at - 3)] * (1 - 0.4 * np.tanh(oven[:, at - 1]))
        oven[:, at] = 0.8 * oven[:, at - 1] + 0.8 * before + 0.1 * room[:, at - 1] - 0.2
    oven = oven + 0.15 * random.normal(size=oven.shape)
    x = np.stack([heat, room, oven], 2)[:, :-1]
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    return split(floats(x), floats(scaled(oven[:, -1:])), seed=seed)


@cache
def gaits(seed: int, rows: int = 3000, moments: int = 12) -> torch.Tensor:
    """One step each by its height over the ground, standardised: N x moments."""
    random, time = np.random.default_rng(seed), np.linspace(0, 2 * np.pi, moments, endpoint=False)
    late, high = random.normal(0, 0.4, (rows, 1)), random.gamma(8, 0.12, (rows, 1))
    limp = np.where(random.random((rows, 1)) < 0.3, 0.9, 0.3)
    x = high * (np.sin(time + late) + limp * np.cos(2 * time + late)) + 0.05 * random.normal(
        size=(rows, moments)
    )
    return floats((x - x.mean()) / x.std())


@cache
def main_parts(count: int = 10) -> torch.Tensor:
    """Digits by their main parts, of a spread of about one: 1797 x count."""
    x = datasets.load_digits().data
    x = x - x.mean(0)
    parts = x @ np.linalg.svd(x, full_matrices=False)[2][:count].T
    return floats(parts / parts.std())


@cache
def plants(seed: int, rows: int = 4000, kinds: int = 16, columns: int = 18) -> Split:
    """Measures of plants, of which kind each is, and kinds lie on bent sheets."""
    random = np.random.default_rng(seed)
    y = random.integers(0, kinds, rows)
    hidden = random.normal(size=(kinds, 5))[y] + 0.45 * random.normal(size=(rows, 5))
    x = np.tanh(hidden @ random.normal(size=(5, 2 * columns)) / 1.5) @ random.normal(
        size=(2 * columns, columns)
    )
    x = scaled(x + 1.0 * random.normal(size=x.shape))
    return split(floats(x), torch.tensor(y), seed=seed)


@cache
def books(seed: int, readers: int = 4000, count: int = 120) -> Split:
    """Which books each has borrowed, 0 or 1; of those held out a third is not known: (N, count)."""
    random = np.random.default_rng(seed)
    pull = 2.0 * random.normal(size=(readers, 6)) @ random.normal(size=(6, count)) / np.sqrt(6)
    pull = pull + 0.4 * random.normal(size=count) - 2.0
    y = floats(random.random((readers, count)) < 1 / (1 + np.exp(-pull)))
    train, (held, _) = split(y, y, seed=seed)
    known = torch.rand(held.shape, generator=torch.Generator().manual_seed(seed)) > 0.33
    return train, (held * known, held + 2 * (held * known))


@cache
def coupons(sizes: tuple[int, ...], seed: int, rows: int = 9000) -> Split:
    """Who, which shop and which day, numbered through, and whether a coupon was used (N x 1)."""
    random = np.random.default_rng(seed)
    kinds = np.stack([random.integers(0, size, rows) for size in sizes], 1)
    parts = [random.normal(size=(size, 3))[kinds[:, at]] for at, size in enumerate(sizes)]
    pull = sum((one * other).sum(1) for at, one in enumerate(parts) for other in parts[:at])
    y = random.random(rows) < 1 / (1 + np.exp(0.8 - 0.9 * pull))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return split(torch.tensor(kinds + first), floats(y[:, None]), seed=seed)
