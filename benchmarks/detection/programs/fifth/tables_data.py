"""Tables of the fifth set, made here after what such tables hold: skewed amounts, kinds, flags, few cases."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.data import floats as _floats
from benchmarks.detection.programs.data import scaled as _scaled

__all__ = [
    "activity", "arm", "bikes", "churn", "clinic", "collider", "concrete", "credit", "fraud", "houses",
    "kernels", "other_sensors", "terrain",
]  # fmt: skip


def _chance(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-score))


@cache
def churn(rows: int = 2600) -> Split:
    """Which customers leave? One in three does: months with the firm, bills, contract, calls for help."""
    random = np.random.default_rng(301)
    months, bill = random.gamma(1.6, 18, rows), random.normal(65, 22, rows).clip(15)
    contract, calls = random.choice(3, rows, p=[0.55, 0.25, 0.2]), random.poisson(1.2, rows)
    flags = (random.random((rows, 4)) < [0.5, 0.3, 0.16, 0.45]).astype(float)
    score = -1.9 + 0.022 * (bill - 65) - 0.035 * (months - 28) - 1.3 * contract + 0.7 * calls
    score += flags @ np.array([1.6, -0.9, 0.5, 0.6]) + 1.2 * (months < 6) * (bill > 70)
    x = np.column_stack(
        [_scaled(np.log1p(months)), _scaled(bill), _scaled(calls), flags, np.eye(3)[contract]]
    )
    return split(_floats(x), _floats(random.random(rows) < _chance(score))[:, None], seed=301)


@cache
def houses(rows: int = 2400) -> Split:
    """Logarithms of prices: place, size, age, rooms and state of houses, standardised."""
    random = np.random.default_rng(302)
    place = random.uniform(-1, 1, (rows, 2))
    size, age = random.lognormal(4.7, 0.4, rows), random.gamma(2, 15, rows)
    state, rooms = (
        random.integers(1, 6, rows),
        np.maximum(1, np.round(size / 28 + random.normal(0, 0.8, rows))),
    )
    centre = np.exp(-4 * ((place - [0.2, -0.3]) ** 2).sum(1)) + 0.6 * np.exp(-9 * ((place + 0.5) ** 2).sum(1))
    y = 0.75 * np.log(size) + 1.1 * centre + 0.12 * state - 0.008 * age + 0.00009 * age**2
    y += 0.04 * rooms + 0.12 * random.standard_t(5, rows)
    x = np.column_stack([place, np.log(size), age, state, rooms])
    return split(_floats(_scaled(x)), _floats(_scaled(y))[:, None], seed=302)


@cache
def terrain(rows: int = 3000) -> Split:
    """What grows there? Five kinds of wood, by height, slope, water, sun and one of six soils."""
    random = np.random.default_rng(303)
    height, slope, water = random.normal(size=rows), random.gamma(2, 0.7, rows), random.exponential(1, rows)
    faces, soil = random.uniform(0, 2 * np.pi, rows), random.integers(0, 6, rows)
    sun = np.cos(faces) * slope
    known = np.column_stack([height, height**2, slope, np.log1p(water), sun, np.sin(faces), height * sun])
    likes = 1.6 * random.normal(size=(7, 5)), 1.3 * random.normal(size=(6, 5))
    score = known @ likes[0] + likes[1][soil] + 0.6 * random.gumbel(size=(rows, 5))
    score -= score.mean(0)
    seen = np.column_stack([height, slope, np.log1p(water), np.sin(faces), np.cos(faces)])
    x = np.column_stack([_scaled(seen), np.eye(6)[soil]])
    return split(_floats(x), torch.tensor(score.argmax(1)), seed=303)


@cache
def bikes(rows: int = 2600) -> Split:
    """How many bikes are out in an hour (5 to 60)? Hour, day, season and weather."""
    random = np.random.default_rng(304)
    hour, free = random.integers(0, 24, rows), random.random(rows) < 0.3
    season, warm, wet = random.uniform(0, 2 * np.pi, rows), random.normal(size=rows), random.random(rows)
    rush = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17) ** 2) / 6)
    day = np.exp(-((hour - 14) ** 2) / 20)
    rate = 1.2 + np.where(free, 1.4 * day, 1.5 * rush + 0.5 * day) + 0.35 * np.tanh(warm) - 0.7 * (wet > 0.75)
    rate += 0.3 * np.cos(season)
    turn = 2 * np.pi * hour / 24
    x = np.column_stack([np.sin(turn), np.cos(turn), np.sin(2 * turn), np.cos(2 * turn), free, np.sin(season),
                         np.cos(season), warm, 2 * wet - 1])  # fmt: skip
    return split(_floats(x), _floats(random.poisson(np.exp(rate)))[:, None], seed=304)


@cache
def arm(rows: int = 2600) -> Split:
    """Two torques of an arm of two links, by angles, speeds and wanted accelerations."""
    random = np.random.default_rng(305)
    (a, b), speed, push = (
        random.uniform(-np.pi, np.pi, (2, rows)),
        random.normal(size=(2, rows)),
        random.normal(size=(2, rows)),
    )
    c, s = np.cos(b), np.sin(b)
    one = (2 + 1.2 * c) * push[0] + (0.5 + 0.6 * c) * push[1] - 0.6 * s * (2 * speed[0] + speed[1]) * speed[1]
    two = (0.5 + 0.6 * c) * push[0] + 0.5 * push[1] + 0.6 * s * speed[0] ** 2
    y = np.stack([one + 2.5 * np.cos(a) + 0.8 * np.cos(a + b), two + 0.8 * np.cos(a + b)], 1)
    x = np.column_stack([np.sin(a), np.cos(a), s, c, speed.T, push.T])
    return split(_floats(x), _floats(_scaled(y + 0.15 * random.normal(size=y.shape))), seed=305)


@cache
def collider(rows: int = 3200) -> Split:
    """Did two particles come from one that is heavy? Energies, angles, and how sure each of them is."""
    random = np.random.default_rng(306)
    heavy = random.random(rows) < 0.5
    energy = random.gamma(3, 0.35, (rows, 2)) + 0.2
    angle = random.uniform(0.2, 2.8, rows)
    mass = np.where(heavy, random.normal(1.0, 0.12, rows), random.gamma(2.2, 0.5, rows) + 0.1)
    # What is missing for that mass is put into the second energy.
    energy[:, 1] = mass**2 / (2 * energy[:, 0] * (1 - np.cos(angle)))
    more = 0.45 * heavy[:, None] * [1, -1, 0.5, 0] + random.normal(size=(rows, 4))
    x = np.column_stack([np.log(energy), np.cos(angle), np.sin(angle), more])
    return split(_floats(_scaled(x)), torch.tensor(heavy.astype(np.int64)), seed=306)


def _worn(rows: int, seed: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """What a phone in a pocket tells: 36 numbers that hang together, of six things one may be doing."""
    random = np.random.default_rng(307)
    middle, ways = random.normal(size=(6, 8)), random.normal(size=(8, 36)) / 3
    bend = random.normal(size=(8, 36)) / 3
    random = np.random.default_rng(seed)
    label = random.integers(0, 6, rows)
    hidden = 1.2 * middle[label] + random.normal(size=(rows, 8)) * random.uniform(0.4, 0.9, (rows, 1))
    x = hidden @ ways + np.tanh(hidden @ bend) + shift * random.normal(size=36)
    return x + 0.35 * random.normal(size=x.shape), label


@cache
def activity(rows: int = 2600) -> Split:
    """Which of six things is someone doing?"""
    x, label = _worn(rows, 308, 0.0)
    return split(_floats(_scaled(x)), torch.tensor(label), seed=307)


@cache
def other_sensors(rows: int = 700) -> Split:
    """The same by another phone, with fewer rows and only three answers: still, walking, riding."""
    x, label = _worn(rows, 309, 0.4)
    return split(_floats(_scaled(x)), torch.tensor(label // 2), held=0.5, seed=309)


@cache
def concrete(rows: int = 1200) -> Split:
    """Strength by what was mixed (kg in a cubic metre) and the days since, standardised."""
    random = np.random.default_rng(310)
    cement, slag, ash = (
        random.uniform(120, 520, rows),
        350 * random.beta(0.5, 1.2, rows),
        200 * random.beta(0.5, 1.2, rows),
    )
    water, plastic = random.normal(182, 20, rows), 30 * random.beta(0.6, 2, rows)
    coarse, fine = random.normal(970, 75, rows), random.normal(770, 80, rows)
    age = random.choice([3, 7, 14, 28, 56, 90, 180], rows)
    y = 28 * (cement + 0.8 * slag + 0.4 * ash) / water * (0.35 + 0.16 * np.log(age)) + 0.5 * plastic
    y += 0.01 * (coarse - 970) + 5 * random.normal(size=rows)
    x = np.column_stack([cement, slag, ash, water, plastic, coarse, fine, np.log(age)])
    return split(_floats(_scaled(x)), _floats(_scaled(y))[:, None], seed=310)


@cache
def credit(rows: int = 4000) -> Split:
    """Who will not pay back? One in eight: income, debt, age of the account, late payments, purpose."""
    random = np.random.default_rng(311)
    income, debt, years = (
        random.lognormal(0, 0.6, rows),
        random.gamma(1.5, 0.4, rows),
        random.gamma(2, 3, rows),
    )
    late, purpose = random.negative_binomial(1, 0.6, rows), random.integers(0, 4, rows)
    share = debt / income
    score = -4.6 + 1.7 * np.log1p(share) + 0.8 * late - 0.12 * years + np.array([0, 0.5, -0.4, 1.1])[purpose]
    score += 1.1 * (share > 1) * (late > 0) + 0.4 * random.normal(size=rows)
    x = _scaled(np.column_stack([np.log(income), np.log1p(debt), np.log1p(years), np.log1p(late)]))
    return split(_floats(np.column_stack([x, np.eye(4)[purpose]])),
                 _floats(random.random(rows) < _chance(score + 0.9))[:, None], seed=311)  # fmt: skip


@cache
def fraud(rows: int = 6000) -> Split:
    """Three payments of a hundred are false; they lie in two corners of what is usual."""
    random = np.random.default_rng(312)
    x = random.standard_t(5, (rows, 12))
    false = random.random(rows) < 0.03
    kind = random.integers(0, 2, rows)
    moved = np.zeros((2, 12))
    moved[0, :5], moved[1, 4:9] = [2.0, -1.6, 1.5, 0.9, -1.2], [1.6, 1.9, -1.5, 1.2, -1.0]
    x += false[:, None] * moved[kind]
    return split(_floats(_scaled(x).clip(-6, 6)), torch.tensor(false.astype(np.int64)), seed=312)


@cache
def clinic() -> Split:
    """A hundred and ten patients to learn from, fourteen findings: ill or not?"""
    random = np.random.default_rng(313)
    ill = random.random(500) < 0.45
    load = random.normal(size=(4, 14))
    x = random.normal(size=(500, 4)) @ load + random.normal(size=(500, 14))
    x += ill[:, None] * random.choice([-1, 1], 14) * np.linspace(1.1, 0.1, 14)
    (x, y), held = split(_floats(_scaled(x)), _floats(ill)[:, None], held=0.6, seed=313)
    return (x[:110], y[:110]), held


@cache
def kernels() -> Split:
    """Ninety grains of three sorts of wheat to learn from, seven measures each."""
    random = np.random.default_rng(314)
    sort = random.integers(0, 3, 400)
    size = np.array([14.3, 18.2, 11.9])[sort] + 1.1 * random.normal(size=400)
    round_ = np.array([0.880, 0.884, 0.850])[sort] + 0.012 * random.normal(size=400)
    around = 2 * np.sqrt(np.pi * size / round_) + 0.05 * random.normal(size=400)
    long = 0.42 * around + 0.08 * random.normal(size=400)
    wide = size / long * 1.27 + 0.05 * random.normal(size=400)
    bent = np.array([2.7, 3.7, 4.8])[sort] + 1.3 * random.normal(size=400)
    groove = long - np.array([0.42, 0.12, 0.11])[sort] + 0.11 * random.normal(size=400)
    x = np.column_stack([size, around, round_, long, wide, bent, groove])
    (x, y), held = split(_floats(_scaled(x)), torch.tensor(sort), held=0.6, seed=314)
    return (x[:90], y[:90]), held
