"""Guests and dishes, banners, terms, facts, and pairs of digits of the seventh set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, digits, floats, split
from benchmarks.detection.programs.seventh.attention_data import numbered

__all__ = ["banners", "dishes", "facts", "paired", "terms"]


@cache
def dishes(guests: int = 70, dishes: int = 50, rows: int = 8000) -> Split:
    """A guest and a dish, and how many stars were given (standardised)."""
    random = np.random.default_rng(721)
    who, what = random.integers(0, guests, rows), random.integers(0, dishes, rows)
    taste, made = random.normal(size=(guests, 3)), random.normal(size=(dishes, 3))
    y = np.tanh((taste[who] * made[what]).sum(1)) * 1.5 + 0.6 * random.normal(size=guests)[who]
    y += 0.6 * random.normal(size=dishes)[what] + 0.5 * random.normal(size=rows)
    y = np.clip(np.round(2 * (y - y.mean()) / y.std()), -4, 4) / 2
    return split(torch.tensor(np.stack([who, what], 1)), floats(y[:, None]), seed=721)


@cache
def banners(rows: int = 6000, sizes: tuple[int, ...] = (12, 20, 8), numbers: int = 5) -> Split:
    """Three kinds, numbered through, and five numbers of a banner and its reader; was it clicked?"""
    random = np.random.default_rng(722)
    kinds = np.stack([random.integers(0, size, rows) for size in sizes], 1)
    x = random.normal(size=(rows, numbers))
    worth = sum(0.6 * random.normal(size=size)[kinds[:, at]] for at, size in enumerate(sizes))
    lean = random.normal(size=(20, numbers))[kinds[:, 1]] * 0.7
    chance = worth + (lean * x).sum(1) + 0.8 * x[:, 0] * x[:, 1] - 1.7
    y = random.random(rows) < 1 / (1 + np.exp(-1.5 * chance))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return split(floats(np.concatenate([kinds + first, x], 1)), floats(y[:, None]), seed=722)


@cache
def terms(words: int = 90, rows: int = 9000) -> Split:
    """Two usual words of scikit-learn's manual: one after the other (1), or together by chance (0)."""
    random = np.random.default_rng(723)
    text = np.array([one for one in numbered("cluster", words) if one > 1])
    at, y = random.integers(0, len(text) - 1, rows), np.arange(rows) % 2
    other = np.where(y, text[at + 1], text[random.integers(0, len(text), rows)])
    return split(torch.tensor(np.stack([text[at], other], 1)), floats(y[:, None]), seed=723)


@cache
def facts(things: int = 80, links: int = 5, groups: int = 8, rows: int = 10000) -> Split:
    """A thing and a link (numbered behind the things), and the thing it leads to: of a group told by both."""
    random = np.random.default_rng(724)
    group = random.integers(0, groups, things)
    leads = np.stack([random.permutation(groups) for _ in range(links)])
    known = random.gamma(0.7, size=things)
    who, link = random.integers(0, things, rows), random.integers(0, links, rows)
    chance = (group == leads[link, group[who]][:, None]) * known + 0.02 * known
    y = (np.cumsum(chance / chance.sum(1, keepdims=True), 1) < random.random((rows, 1))).sum(1)
    return split(torch.tensor(np.stack([who, things + link], 1)), torch.tensor(y), seed=724)


@cache
def paired(rows: int = 3000) -> Split:
    """Two digits of 8 x 8 side by side, and whether they are the same (half of the rows)."""
    found = []
    for at, ((x, y), count) in enumerate(zip(digits(), (rows, rows // 4), strict=True)):
        source = torch.Generator().manual_seed(725 + at)
        one = torch.randint(len(x), (count,), generator=source)
        same = (torch.arange(count) % 2 == 0)[:, None]
        fits = (y[one][:, None] == y) == same
        other = torch.multinomial(fits.float(), 1, generator=source)[:, 0]
        found.append((torch.cat([x[one], x[other]], 1), same.float()))
    return found[0], found[1]
