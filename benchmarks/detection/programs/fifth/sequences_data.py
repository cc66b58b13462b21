"""Series of numbers in the fifth set, all of them made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["activities", "bearings", "demand", "gestures", "letters_drawn", "meters", "orbits", "rivers",
           "sales", "turbines", "visits"]  # fmt: skip


def _smooth(random: np.random.Generator, length: int, stay: float) -> np.ndarray:
    """An autoregressive walk around zero with spread 1."""
    noise, found = random.normal(size=length) * np.sqrt(1 - stay**2), np.zeros(length)
    for place in range(1, length):
        found[place] = stay * found[place - 1] + noise[place]
    return found


@cache
def gestures(rows: int = 1600, length: int = 24) -> Split:
    """How a pen moved on: a circle, an eight, a zigzag, a spiral or a square?"""
    random = np.random.default_rng(301)
    x, y = np.zeros((rows, length, 2)), random.integers(0, 5, rows)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
    for moved, kind in zip(x, y, strict=True):
        t = np.linspace(0, 1, length + 1) ** np.exp(0.25 * random.normal())
        turn = 2 * np.pi * t
        shape = [
            np.stack([np.cos(turn), np.sin(turn)], 1),
            np.stack([np.sin(turn), np.sin(2 * turn)], 1),
            np.stack([2 * t - 1, 2 * abs((3 * t) % 1 - 0.5)], 1),
            np.stack([t * np.cos(2 * turn), t * np.sin(2 * turn)], 1),
            np.stack([np.interp(4 * t, range(5), side) for side in corners.T], 1),
        ][kind]
        angle, size = random.normal() * 0.6, np.exp(0.3 * random.normal())
        turned = shape @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        moved[:] = np.diff(size * turned + 0.06 * random.normal(size=turned.shape), axis=0)
    return split(floats(x / x.std()), torch.tensor(y), seed=301)


@cache
def demand(window: int = 36, ahead: int = 6, hours: int = 6000) -> Split:
    """Demand for power: two days of it with temperature and hour, and the next six hours of demand."""
    random = np.random.default_rng(302)
    hour = np.arange(hours)
    warm = np.sin(2 * np.pi * hour / 24 - 2) + 1.5 * _smooth(random, hours, 0.995)
    weekend = (hour // 24) % 7 > 4
    daily = np.sin(2 * np.pi * hour / 24 - 1.5) + 0.5 * np.sin(4 * np.pi * hour / 24)
    power = daily * (1 - 0.5 * weekend) - 0.6 * weekend + 0.3 * warm**2 + 0.25 * _smooth(random, hours, 0.8)
    power = (power - power.mean()) / power.std()
    known = np.stack([power, warm / 1.7, np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12), weekend], 1)
    at = np.arange(0, hours - window - ahead, 3)
    x = np.stack([known[one : one + window] for one in at])
    y = np.stack([power[one + window : one + window + ahead] for one in at])
    cut = int(0.75 * len(at))
    return (floats(x[:cut]), floats(y[:cut])), (floats(x[cut + 16 :]), floats(y[cut + 16 :]))


@cache
def turbines(rows: int = 2000, window: int = 30, sensors: int = 6) -> Split:
    """Thirty readings of six sensors of an engine that wears out, and how long it still goes (0 to 1)."""
    random = np.random.default_rng(303)
    bent = random.uniform(2, 6, sensors)
    way = random.choice([-1, 1], sensors) * random.uniform(0.6, 1.4, sensors)
    x, y = np.zeros((rows, window, sensors)), np.zeros((rows, 1))
    for readings, left in zip(x, y, strict=True):
        life = random.uniform(90, 180)
        end = random.uniform(window, life)
        worn = np.linspace(end - window, end, window)[:, None] / life
        readings[:] = way * (np.exp(bent * worn) - 1) / (np.exp(bent) - 1) * 3
        readings[:] += 0.35 * random.normal(size=readings.shape) + 0.15 * random.normal(size=sensors)
        left[:] = min(life - end, 90) / 90
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    return split(floats(x), floats(y), seed=303)


@cache
def sales(rows: int = 1500, weeks: int = 28) -> Split:
    """Weekly sales of articles, each in units of its own mean so far; and those of the next weeks."""
    random = np.random.default_rng(304)
    found = np.zeros((rows, weeks + 1))
    for sold in found:
        level, trend, phase = random.gamma(3, 30), random.normal() * 0.015, random.uniform(0, 2 * np.pi)
        week = np.arange(weeks + 1)
        mean = level * np.exp(trend * week + 0.5 * np.sin(2 * np.pi * week / 7 + phase))
        sold[:] = random.poisson(random.gamma(12, mean / 12))
    found = found / (1 + found[:, :8].mean(1, keepdims=True)) - 1
    return split(floats(found[:, :-1, None]), floats(found[:, 1:]), seed=304)


@cache
def bearings(rows: int = 1600, length: int = 128) -> Split:
    """How a bearing shakes: whole, or worn at its outer ring, its inner ring or a ball? In noise."""
    random = np.random.default_rng(305)
    x, y = np.zeros((rows, 1, length)), random.integers(0, 4, rows)
    t = np.arange(length)
    for (shaken,), kind in zip(x, y, strict=True):
        shaken[:] = 0.7 * np.sin(2 * np.pi * t / random.uniform(28, 36) + random.uniform(0, 6))
        if kind:
            every, rings = (0, 21, 13, 17)[kind] * random.uniform(0.95, 1.05), (0, 0.9, 1.5, 1.2)[kind]
            for hit in np.arange(random.uniform(0, every), length, every):
                after = np.clip(t - hit, 0, None)
                shaken[:] += (t >= hit) * random.uniform(1, 2) * np.exp(-after / 4) * np.sin(rings * after)
        shaken[:] += 0.5 * random.normal(size=length)
    return split(floats(x / x.std()), torch.tensor(y), seed=305)


@cache
def activities(rows: int = 1000, length: int = 64) -> Split:
    """Three accelerations, and at each moment whether someone sits, walks, climbs or runs: (N, 3, L)."""
    random = np.random.default_rng(306)
    x, y = np.zeros((rows, 3, length)), np.zeros((rows, length), np.int64)
    beat, swing = np.array([0.0, 0.5, 0.42, 0.95]), np.array([0.05, 0.7, 0.8, 1.5])
    for moved, told in zip(x, y, strict=True):
        cuts = np.sort(random.choice(np.arange(10, length - 10), random.integers(1, 3), replace=False))
        told[:] = random.integers(0, 4, len(cuts) + 1)[np.searchsorted(cuts, np.arange(length), "right")]
        phase = np.cumsum(beat[told] * random.uniform(0.9, 1.1)) + random.uniform(0, 6)
        moved[0] = swing[told] * np.sin(phase)
        moved[1] = 0.6 * swing[told] * np.sin(2 * phase + 0.5) + 0.5 * (told == 2)
        moved[2] = 0.3 * swing[told] * np.cos(phase) - 0.4 * (told == 0)
        moved[:] += 0.4 * random.normal(size=moved.shape)
    return split(floats(x / x.std()), torch.tensor(y), seed=306)


@cache
def meters(rows: int = 1800, hours: int = 24) -> Split:
    """What a household uses in a day (standardised); nothing to tell but itself, and which sort it is."""
    random = np.random.default_rng(307)
    hour, kind = np.arange(hours), random.integers(0, 4, rows)
    x = np.zeros((rows, hours))
    for used, sort in zip(x, kind, strict=True):
        for middle, wide, high in (((7, 1.5, 1.0), (19, 2.5, 1.6)), ((12, 3.0, 1.4),), ((22, 2.0, 1.5),),
                                   ((8, 1.2, 1.5), (13, 1.5, 0.8), (18, 1.2, 1.2)))[sort]:  # fmt: skip
            about, much = middle + random.normal(), high * np.exp(0.3 * random.normal())
            used[:] += much * np.exp(-0.5 * ((hour - about) / (wide * np.exp(0.2 * random.normal()))) ** 2)
        used[:] += 0.1 * random.normal(size=hours)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(kind), seed=307)


@cache
def orbits(rows: int = 1400, length: int = 20) -> Split:
    """An arm that swings in two joints, each at its own pace, size and phase; nothing to tell but itself."""
    random = np.random.default_rng(308)
    t = np.arange(length)[None, :, None]
    pace, phase = random.uniform(0.25, 0.6, (rows, 1, 2)), random.uniform(0, 2 * np.pi, (rows, 1, 2))
    x = random.uniform(0.6, 1.4, (rows, 1, 2)) * np.sin(pace * t + phase)
    x = floats(x + 0.05 * random.normal(size=x.shape))
    return split(x, x, seed=308)


@cache
def letters_drawn(rows: int = 1800, side: int = 16) -> Split:
    """Which of six letters was drawn by hand, more or less upright, in noise? One channel."""
    random = np.random.default_rng(309)
    strokes = (
        ((-1, -1, 1, -1), (0, -1, 0, 1)),  # T
        ((-1, -1, -1, 1), (-1, 1, 1, 1)),  # L
        ((-1, -1, 1, 1), (-1, 1, 1, -1)),  # X
        ((-1, -1, -1, 1), (1, -1, 1, 1), (-1, 0, 1, 0)),  # H
        ((-1, -1, 1, -1), (1, -1, -1, 1), (-1, 1, 1, 1)),  # Z
        ((-1, 1, -1, -1), (-1, -1, 1, 1), (1, 1, 1, -1)),  # N
    )
    grid = np.stack(np.meshgrid(np.linspace(-1.6, 1.6, side), np.linspace(-1.6, 1.6, side)), -1)
    x, y = np.zeros((rows, 1, side, side)), random.integers(0, 6, rows)
    for (picture,), kind in zip(x, y, strict=True):
        shear, angle = random.normal() * 0.25, random.normal() * 0.2
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        bend = turn @ np.array([[1, shear], [0, 1]]) * random.uniform(0.7, 1.1)
        moved = 0.2 * random.normal(size=2)
        for stroke in strokes[kind]:
            one, two = (bend @ np.array(end) + moved for end in (stroke[:2], stroke[2:]))
            along = np.clip(((grid - one) @ (two - one)) / ((two - one) ** 2).sum(), 0, 1)
            far = ((grid - one - along[..., None] * (two - one)) ** 2).sum(-1)
            np.maximum(picture, np.exp(-far / 0.03), out=picture)
        picture[:] += 0.15 * random.normal(size=picture.shape)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(y), seed=309)


@cache
def rivers(window: int = 36, ahead: int = 12, rows: int = 2000) -> Split:
    """How high a river stood each hour: waves of the tide, and of rain that comes and runs off."""
    random = np.random.default_rng(310)
    hours = 3 * rows + window + ahead
    rain, high, t = np.zeros(hours), np.zeros(hours), np.arange(hours)
    rain[random.random(hours) < 0.02] = 1
    for place in range(1, hours):
        high[place] = 0.93 * high[place - 1] + rain[place] * random.gamma(2, 0.5)
    high += 0.8 * np.sin(2 * np.pi * t / 12.4) + 0.3 * np.sin(2 * np.pi * t / 24.8 + 1)
    high += 0.08 * random.normal(size=hours)
    high = (high - high.mean()) / high.std()
    rows_of = floats(np.stack([high[at : at + window + ahead] for at in range(0, 3 * rows, 3)]))
    cut = int(0.75 * rows)
    first, rest = rows_of[:cut], rows_of[cut + 16 :]
    return (first[:, :window], first[:, window:]), (rest[:, :window], rest[:, window:])


@cache
def visits(rows: int = 1600, length: int = 12, items: int = 60) -> Split:
    """Pages (1 to 60) that visitors saw, and the next at each place: mostly of the topic, then a sequel."""
    random = np.random.default_rng(318)
    topic, sequel = random.integers(0, 6, items), random.permutation(items)
    worth = random.gamma(1.0, size=items)
    seen = np.zeros((rows, length + 1), np.int64)
    for row in seen:
        mine = random.choice(6, 2, replace=False)
        chance = worth * np.where(np.isin(topic, mine), 1.0, 0.02)
        row[0] = random.choice(items, p=chance / chance.sum())
        for place in range(1, length + 1):
            follows = random.random() < 0.55
            row[place] = sequel[row[place - 1]] if follows else random.choice(items, p=chance / chance.sum())
    found = torch.tensor(seen + 1)
    return split(found[:, :-1], found[:, 1:], seed=318)
