"""Pairs, links and things to be compared in the fifth set, all of them made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["adverts", "appliances", "described", "films", "links", "questions", "voices"]


@cache
def films(users: int = 120, films: int = 90, rows: int = 6000) -> Split:
    """A user and a film, and whether it was watched; two of three were not (drawn at random)."""
    random = np.random.default_rng(321)
    taste, kind = random.normal(size=(users, 3)), random.normal(size=(films, 3))
    liked = np.exp(1.3 * taste @ kind.T + 0.6 * random.normal(size=films))
    liked /= liked.sum(1, keepdims=True)
    who = random.integers(0, users, rows)
    watched = np.array([random.choice(films, p=liked[one]) for one in who[: rows // 3]])
    which = np.concatenate([watched, random.integers(0, films, rows - len(watched))])
    y = (np.arange(rows) < len(watched)).astype(float)[:, None]
    return split(torch.tensor(np.stack([who, which], 1)), floats(y), seed=321)


@cache
def adverts(rows: int = 4500) -> Split:
    """Three numbers and four kinds (12, 8, 20 and 5 of each); one in five was clicked. Columns of floats."""
    random = np.random.default_rng(322)
    sizes = (12, 8, 20, 5)
    kinds = np.stack([random.integers(0, size, rows) for size in sizes], 1)
    numbers = random.normal(size=(rows, 3))
    worth = sum(random.normal(size=size)[kinds[:, place]] for place, size in enumerate(sizes))
    crossed = random.normal(size=(12, 20))[kinds[:, 0], kinds[:, 2]]
    chance = 0.9 * worth + 1.1 * crossed + numbers[:, 0] - 0.8 * numbers[:, 1] * (kinds[:, 3] == 1) - 2.6
    y = random.random(rows) < 1 / (1 + np.exp(-chance))
    return split(floats(np.concatenate([numbers, kinds], 1)), floats(y[:, None]), seed=322)


@cache
def links(things: int = 90, rows: int = 5000) -> Split:
    """A thing, one of five relations, and the thing it leads to: further along a ring, or of its colour."""
    random = np.random.default_rng(323)
    place, colour = random.permutation(things), random.integers(0, 6, things)
    at = np.argsort(place)
    head, relation = random.integers(0, things, rows), random.integers(0, 5, rows)
    shift = np.array([3, 20, 45, 70])[np.minimum(relation, 3)] + random.integers(-2, 3, rows)
    alike = np.array([random.choice(np.nonzero(colour == colour[one])[0]) for one in head])
    tail = np.where(relation < 4, at[(place[head] + shift) % things], alike)
    return split(torch.tensor(np.stack([head, relation], 1)), torch.tensor(tail), seed=323)


@cache
def appliances(rows: int = 1600, length: int = 48) -> Split:
    """What an appliance draws over time: (N, 1, L); and which of five it is, for the score only."""
    random = np.random.default_rng(324)
    x, y = np.zeros((rows, 1, length)), random.integers(0, 5, rows)
    t = np.arange(length)
    for (drawn,), kind in zip(x, y, strict=True):
        begun, long = random.integers(2, 12), random.integers(22, 34)
        on = (t >= begun) & (t < begun + long)
        since = np.clip(t - begun, 0, None)
        drawn[:] = on * (
            np.ones(length), 0.5 + 1.5 * np.exp(-since / 3), since / long * 1.5, 1.0 * ((since // 4) % 2),
            1 + 0.6 * np.sin(since / 1.5),
        )[kind] * np.exp(0.2 * random.normal())  # fmt: skip
        drawn[:] += 0.3 * random.normal(size=length)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(y), seed=324)


@cache
def described(rows: int = 2400, numbers: int = 12) -> Split:
    """A thing's twelve measures, and six words (1 to 40) about it: side by side, as floats."""
    random = np.random.default_rng(325)
    hidden = random.normal(size=(rows, 5))
    measured = np.tanh(hidden @ random.normal(size=(5, numbers))) + 0.1 * random.normal(size=(rows, numbers))
    meaning = random.normal(size=(40, 5))
    near = hidden @ meaning.T + 0.3 * random.gumbel(size=(rows, 40))
    words = np.argsort(-near, 1)[:, :6] + 1
    both = np.concatenate([measured / measured.std(), random.permuted(words, axis=1)], 1)
    return split(floats(both), torch.arange(rows), seed=325)


@cache
def voices(speakers: int = 24, each: int = 80) -> Split:
    """Forty numbers of a short recording, and who spoke: what differs between rooms is larger than voices."""
    random = np.random.default_rng(326)
    y = np.repeat(np.arange(speakers), each)
    voice = random.normal(size=(speakers, 8))[y] + 0.45 * random.normal(size=(len(y), 8))
    room = 1.2 * random.normal(size=(len(y), 12))
    mixed = np.concatenate([voice, room], 1) @ random.normal(size=(20, 40)) / 4
    x = np.tanh(mixed) + 0.1 * random.normal(size=(len(y), 40))
    return split(floats((x - x.mean(0)) / x.std(0)), torch.tensor(y), seed=326)


@cache
def questions(rows: int = 3000, length: int = 8) -> Split:
    """Two questions of eight words (1 to 60) each: do they ask for the same (1) or not (-1)?

    Words 3k + 1 to 3k + 3 mean the same.
    """
    random = np.random.default_rng(327)
    first = random.integers(0, 20, (rows, length))
    second = np.where(random.random((rows, length)) < 0.2, random.integers(0, 20, (rows, length)), first)
    same = random.random(rows) < 0.5
    half = np.where(random.random((rows, length)) < 0.15, first, random.integers(0, 20, (rows, length)))
    second = np.where(same[:, None], random.permuted(second, axis=1), random.permuted(half, axis=1))
    x = 3 * np.stack([first, second], 1) + random.integers(1, 4, (rows, 2, length))
    return split(torch.tensor(x), floats(2.0 * same - 1), seed=327)
