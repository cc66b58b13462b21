"""Clips, lessons, terms, fares and patients of the eighth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["clips", "fares", "lessons", "patients", "together"]


@cache
def clips(viewers: int, count: int, seed: int, rows: int = 14000) -> Split:
    """A viewer and a clip (numbered behind the viewers), and whether it was watched to its end."""
    random = np.random.default_rng(seed)
    taste, made = random.normal(size=(viewers, 3)), random.normal(size=(count, 3))
    who, what = random.integers(0, viewers, rows), random.integers(0, count, rows)
    pull = (taste[who] * made[what]).sum(1) + 0.7 * random.normal(size=count)[what]
    y = random.random(rows) < 1 / (1 + np.exp(-2 * pull + 0.5))
    return split(torch.tensor(np.stack([who, viewers + what], 1)), floats(y[:, None]), seed=seed)


@cache
def lessons(count: int, length: int, seed: int, rows: int = 8000) -> Split:
    """Lessons that somebody took (0 pads), and the next one: of a like subject, and a little harder."""
    random = np.random.default_rng(seed)
    subject, hard = random.normal(size=(count, 4)), random.uniform(0, 1, count)
    x, y = np.zeros((rows, length), np.int64), np.zeros(rows, np.int64)
    for row in range(rows):
        wish, able = random.normal(size=4), random.uniform(0, 0.5)
        pull = 2.5 * subject @ wish / np.linalg.norm(wish)
        taken = 1 + int(random.integers(length // 2, length + 1))
        for at in range(taken):
            chance = np.exp(pull - 40 * (hard - able) ** 2)
            able = min(1.0, able + 0.06)
            one = min(int((chance.cumsum() / chance.sum() < random.random()).sum()), count - 1)
            if at < taken - 1:
                x[row, at] = 1 + one
            y[row] = one
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def together(words: int, seed: int, rows: int = 16000) -> Split:
    """Two words, and the logarithm of how often they stand near each other (standardised)."""
    random = np.random.default_rng(seed)
    sense, common = random.normal(size=(words, 4)), random.normal(size=words)
    often = 0.5 * sense @ sense.T + common[:, None] + common
    often = np.log1p(random.poisson(np.exp(often.clip(max=6) + 1)))
    one, two = random.integers(0, words, (2, rows))
    y = often[one, two]
    y = floats(((y - y.mean()) / y.std())[:, None])
    return split(torch.tensor(np.stack([one, two], 1)), y, seed=seed)


@cache
def fares(sizes: tuple[int, ...], seed: int, rows: int = 6000) -> Split:
    """Where from, where to, which hour and which cab, numbered through, and the fare (standardised)."""
    random = np.random.default_rng(seed)
    kinds = np.stack([random.integers(0, size, rows) for size in sizes], 1)
    place = random.normal(size=(max(sizes[:2]), 2))
    way = np.linalg.norm(place[kinds[:, 0]] - place[kinds[:, 1]], axis=1)
    busy, cab = 1 + 0.5 * np.sin(np.arange(sizes[2])), random.uniform(0.7, 1.5, sizes[3])
    y = np.log(0.5 + way * busy[kinds[:, 2]] * cab[kinds[:, 3]]) + 0.15 * random.normal(size=rows)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return split(torch.tensor(kinds + first), floats(((y - y.mean()) / y.std())[:, None]), seed=seed)


@cache
def patients(columns: int, kinds: int, seed: int, rows: int = 2600) -> Split:
    """Blood values that follow from a few hidden ones, and of which kind the patient is."""
    random = np.random.default_rng(seed)
    y, hidden = random.integers(0, kinds, rows), 5
    z = 1.6 * random.normal(size=(kinds, hidden))[y] + 0.7 * random.normal(size=(rows, hidden))
    x = np.tanh(z @ random.normal(size=(hidden, columns)) / 2) + 0.3 * random.normal(size=(rows, columns))
    return split(floats((x - x.mean(0)) / x.std(0)), torch.tensor(y), seed=seed)
