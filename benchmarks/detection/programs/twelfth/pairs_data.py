"""Museums, tools and what passes by a lift, of the twelfth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["KEPT", "ferries", "museums", "perfumes", "shoes", "suits", "tools"]

KEPT = 0.85
"""What the next trip of a ferry counts."""


@cache
def museums(seed: int, ones: int, places: int, weathers: int, rows: int = 9000) -> Split:
    """Somebody, a museum and the weather (numbered through), and whether it was visited (N x 1)."""
    random = np.random.default_rng(seed)
    taste, kind = random.normal(size=(ones, 3)), random.normal(size=(places, 3))
    known, wet = random.normal(size=places), random.normal(size=(weathers, 2))
    roofed, one = random.normal(size=(places, 2)), random.integers(0, ones, rows)
    place, weather = random.integers(0, places, rows), random.integers(0, weathers, rows)
    score = (taste[one] * kind[place]).sum(1) + known[place] + 0.7 * (wet[weather] * roofed[place]).sum(1)
    visited = random.random(rows) < 1 / (1 + np.exp(-1.6 * score))
    x = np.stack([one, ones + place, ones + places + weather], 1)
    return split(torch.tensor(x), floats(visited)[:, None], seed=seed)


@cache
def tools(seed: int, things: int, rows: int = 8000, known: int = 6) -> Split:
    """Tools of one job that somebody borrowed, (N, known), and the next."""
    random = np.random.default_rng(seed)
    needed = random.gamma(0.35, 1.0, (9, things)) + 0.02
    chance = (needed / needed.sum(1, keepdims=True))[random.integers(0, 9, rows)].cumsum(1)
    drawn = (random.random((rows, known + 1, 1)) > chance[:, None]).sum(2).clip(0, things - 1)
    return split(torch.tensor(drawn[:, :-1]), torch.tensor(drawn[:, -1]), seed=seed)


@cache
def perfumes(seed: int, rows: int = 3000) -> torch.Tensor:
    """Shares of eight oils in perfumes of three families, by their logarithms (standardised)."""
    random = np.random.default_rng(seed)
    middle = 1.2 * random.normal(size=(3, 8))
    x = middle[random.integers(0, 3, rows)] + 0.5 * random.normal(size=(rows, 8)) @ random.normal(size=(8, 8))
    return floats((x - x.mean(0)) / x.std(0))


@cache
def shoes(seed: int, rows: int = 3000) -> torch.Tensor:
    """Nine measures of shoes that bend with their size (standardised)."""
    random = np.random.default_rng(seed)
    size, wide = random.normal(size=(2, rows, 1))
    x = size * random.normal(size=9) + 0.6 * wide * random.normal(size=9)
    x = x + 0.4 * np.sin(2 * size + random.uniform(0, 6, 9)) + 0.25 * random.normal(size=(rows, 9))
    return floats((x - x.mean(0)) / x.std(0))


@cache
def suits(seed: int, rows: int = 4000, numbers: int = 6, ways: int = 4) -> Split:
    """What is known of a patient in pain, and what each of four exercises would bring: (N, ways)."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, numbers))
    bends = np.tanh(x @ random.normal(size=(numbers, 8)))
    return split(floats(x), floats(0.8 * bends @ random.normal(size=(8, ways)) / 2), seed=seed)


def _crossed(random: np.random.Generator, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a trip earns, and tide, wind and who waits after it (... x 3)."""
    tide, wind, waits = np.moveaxis(state, -1, 0)
    worth = np.tanh(waits) - 0.3 * np.maximum(0, wind) ** 2 + 0.4 * tide
    after = np.stack([0.7 * tide + 0.3 * wind, 0.8 * wind, 0.6 * waits + 0.3 * np.tanh(wind)], -1)
    return worth, after + random.normal(size=state.shape) * [0.3, 0.4, 0.5]


@cache
def ferries(seed: int, rows: int = 5000, held: int = 500, lives: int = 60, trips: int = 30) -> Split:
    """Trips with what they earned and what followed; and states with what all that follows is worth."""
    random = np.random.default_rng(seed)
    state = random.normal(size=(rows + held, 3)) * [0.6, 0.7, 0.9]
    worth, after = _crossed(random, state[:rows])
    now, total = np.repeat(state[rows:, None], lives, 1), 0.0
    for trip in range(trips):
        gain, now = _crossed(random, now)
        total = total + KEPT**trip * gain.mean(1)
    train = floats(np.concatenate([state[:rows], after], 1)), floats(worth)[:, None]
    return train, (floats(state[rows:]), floats(total)[:, None])
