"""Users and things, walks, offers, and rows to compare, of the sixth set: all made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.fifth.sequences_data import floats

__all__ = ["carts", "halves", "offers", "profiles", "songs", "walks"]


@cache
def songs(users: int = 80, songs: int = 60, rows: int = 9000) -> Split:
    """A user and a song, and how often it was played (a logarithm, standardised)."""
    random = np.random.default_rng(631)
    who, which = random.integers(0, users, rows), random.integers(0, songs, rows)
    taste, kind = random.normal(size=(users, 3)), random.normal(size=(songs, 3))
    keen, known = 0.8 * random.normal(size=users), 0.8 * random.normal(size=songs)
    y = (taste[who] * kind[which]).sum(1) / 1.5 + keen[who] + known[which] + 0.5 * random.normal(size=rows)
    y = (y - y.mean()) / y.std()
    return split(torch.tensor(np.stack([who, which], 1)), floats(y[:, None]), seed=631)


@cache
def carts(things: int = 60, rows: int = 2400, each: int = 8) -> Split:
    """Which things a customer has, and which more were bought later: rows of 0 and 1."""
    random = np.random.default_rng(632)
    wanted = random.dirichlet(np.full(things, 0.1), 6)
    mixed = random.dirichlet(np.full(6, 0.2), rows) @ wanted + 1e-4
    x, y = np.zeros((rows, things)), np.zeros((rows, things))
    for has, then, chance in zip(x, y, mixed, strict=True):
        found = random.choice(things, 2 * each, p=chance / chance.sum())
        has[found[:each]], then[found[each:]] = 1, 1
    return split(floats(x), floats(y), seed=632)


@cache
def walks(places: int = 60, rows: int = 9000) -> Split:
    """Two places, and whether a walk of two steps led from one to the other (half of the rows)."""
    random = np.random.default_rng(633)
    town = random.integers(0, 5, places)
    near = (town[:, None] == town) * 0.4 + 0.01 + 0.3 * (random.random((places, places)) < 0.04)
    near *= random.gamma(1.5, size=places)
    near /= near.sum(1, keepdims=True)
    start = random.integers(0, places, rows)
    end = start.copy()
    for _ in range(2):
        end = np.array([random.choice(places, p=near[one]) for one in end])
    y = np.arange(rows) % 2
    end = np.where(y, end, random.integers(0, places, rows))
    return split(torch.tensor(np.stack([start, end], 1)), floats(y[:, None]), seed=633)


@cache
def offers(rows: int = 5000, sizes: tuple[int, ...] = (15, 10, 25, 6)) -> Split:
    """Four kinds, numbered through, of an offer and its reader, and whether it was taken (one in four)."""
    random = np.random.default_rng(634)
    kinds = np.stack([random.integers(0, size, rows) for size in sizes], 1)
    worth = sum(0.7 * random.normal(size=size)[kinds[:, at]] for at, size in enumerate(sizes))
    one, two = random.normal(size=(15, 2)), random.normal(size=(25, 2))
    chance = worth + (one[kinds[:, 0]] * two[kinds[:, 2]]).sum(1) - 1.6
    y = random.random(rows) < 1 / (1 + np.exp(-chance))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return split(torch.tensor(kinds + first), floats(y[:, None]), seed=634)


@cache
def halves(rows: int = 2200, numbers: int = 16) -> Split:
    """Two sensors' answers to the same six causes, bent and in noise, side by side."""
    random = np.random.default_rng(636)
    cause = random.normal(size=(rows, 6))
    seen = [np.tanh(cause @ random.normal(size=(6, numbers)) / 1.5) for _ in range(2)]
    x = np.concatenate(seen, 1) + 0.25 * random.normal(size=(rows, 2 * numbers))
    return split(floats(x / x.std()), torch.arange(rows), seed=636)


@cache
def profiles(rows: int = 1800, numbers: int = 24, kinds: int = 5) -> Split:
    """A profile of 24 genes, of five tissues; tissues differ less than what is measured beside them."""
    random = np.random.default_rng(637)
    y = random.integers(0, kinds, rows)
    own = random.normal(size=(kinds, 6))[y] + 0.6 * random.normal(size=(rows, 6))
    beside = 1.5 * random.normal(size=(rows, 3))
    x = np.concatenate([own, beside], 1) @ random.normal(size=(9, numbers))
    x = np.log1p(np.exp(x)) + 0.3 * random.normal(size=(rows, numbers))
    return split(floats((x - x.mean(0)) / x.std(0)), torch.tensor(y), seed=637)
