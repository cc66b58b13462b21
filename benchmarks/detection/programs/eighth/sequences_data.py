"""Series, words, code, baskets and random fields of the eighth set. Token 0 pads."""

from __future__ import annotations

import importlib
import inspect
from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = [
    "CHARACTERS",
    "baskets",
    "calls",
    "fields",
    "hums",
    "sessions",
    "source",
    "spoken",
    "stages",
    "sugar",
]

CHARACTERS = "".join(chr(one) for one in (0, 10, *range(32, 127)))


@cache
def hums(
    classes: int, channels: int, length: int, seed: int, rows: int = 1800, noise: float = 0.4
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Several sensors beside a machine that rings at a class's pitch: (N, L, C), the class, and the pitch.

    Autoregressions of second order, driven by noise, each row with a pitch and a damping of its own.
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, rows)
    pitch = np.linspace(0.25, 1.3, classes)[y] * np.exp(0.06 * random.normal(size=rows))
    radius, near = random.uniform(0.9, 0.97, rows), random.uniform(0.4, 1.0, (classes, channels))[y]
    kept = np.zeros((rows, length + 40))
    for at in range(2, length + 40):
        kept[:, at] = 2 * radius * np.cos(pitch) * kept[:, at - 1] - radius**2 * kept[:, at - 2]
        kept[:, at] += random.normal(size=rows)
    heard = kept[:, 40:, None] / kept.std(1)[:, None, None] * near[:, None]
    x = heard + noise * random.normal(size=(rows, length, channels))
    pitch = (pitch - pitch.mean()) / pitch.std()
    return floats(x / x.std()), torch.tensor(y), floats(pitch[:, None])


@cache
def sugar(window: int, ahead: int, seed: int, rows: int = 1800) -> Split:
    """Sugar in the blood, meals and insulin of some hours, (N, window, 3), and the sugar to come (N, ahead).

    Standardised; the last days of each of thirty people are held out.
    """
    random = np.random.default_rng(seed)
    people, long = 30, rows // 15 + window + ahead
    meal = random.gamma(2.0, 0.5, (people, long)) * (random.random((people, long)) < 0.12)
    dose = np.roll(meal, 1, 1) * random.uniform(0.5, 1.1, (people, long))
    level, gut, drug = np.zeros((people, long)), np.zeros(people), np.zeros(people)
    for at in range(1, long):
        gut, drug = 0.75 * gut + meal[:, at], 0.85 * drug + dose[:, at]
        level[:, at] = 0.9 * level[:, at - 1] + 0.45 * gut - 0.3 * drug + 0.08 * random.normal(size=people)
    level = (level - level.mean()) / level.std()
    every = np.stack([level, (meal - meal.mean()) / meal.std(), (dose - dose.mean()) / dose.std()], 2)
    parts, last = [], long - window - ahead
    for starts in (range(0, int(0.75 * last), 2), range(int(0.75 * last) + ahead, last, 2)):
        x = np.concatenate([every[:, at : at + window] for at in starts])
        y = np.concatenate([level[:, at + window : at + window + ahead] for at in starts])
        parts.append((floats(x), floats(y)))
    return parts[0], parts[1]


@cache
def spoken(
    states: int, words: int, length: int, seed: int, rows: int = 1500, speakers: int = 1,
    share: tuple[float, ...] = (),
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Words (2 and up; 0 pads, 1 is rare), the part of speech of each (0: padding), and who speaks.

    Parts of speech follow each other in the manner of a speaker, and words come from the part.
    """
    random = np.random.default_rng(seed)
    who = random.choice(speakers, rows, p=share or None)
    follow = random.dirichlet(np.full(states, 0.4), (speakers, states)).cumsum(-1)
    use = random.dirichlet(np.full(words, 0.08), states).cumsum(-1)
    x, tags = np.zeros((2, rows, length), np.int64)
    state, end = random.integers(0, states, rows), random.integers(length // 2, length + 1, rows)
    for at in range(length):
        state = (follow[who, state] < random.random((rows, 1))).sum(1).clip(max=states - 1)
        word = 2 + (use[state] < random.random((rows, 1))).sum(1).clip(max=words - 1)
        there = at < end
        x[there, at], tags[there, at] = word[there], 1 + state[there]
    x[(random.random(x.shape) < 0.03) & (x > 0)] = 1
    return torch.tensor(x), torch.tensor(tags), torch.tensor(who)


@cache
def sessions(pages: int, length: int, seed: int, rows: int = 2400) -> Split:
    """Pages that were seen one after the other, the last of them last, and whether something was bought."""
    random = np.random.default_rng(seed)
    follow = random.dirichlet(np.full(pages, 0.3), pages).cumsum(-1)
    pull, page, wish = random.normal(size=pages), random.integers(0, pages, rows), np.zeros(rows)
    x, begin = np.zeros((rows, length), np.int64), random.integers(0, length // 2, rows)
    for at in range(length):
        page = (follow[page] < random.random((rows, 1))).sum(1).clip(max=pages - 1)
        there = at >= begin
        x[there, at] = 1 + page[there]
        wish = np.where(there, 0.8 * wish + pull[page], wish)
    chance = 1 / (1 + np.exp(-2.5 * (wish - np.median(wish)) / wish.std()))
    return split(torch.tensor(x), floats((random.random(rows) < chance)[:, None]), seed=seed)


@cache
def calls(length: int, seed: int, rows: int = 1500) -> Split:
    """Calls in each quarter of an hour beside the clock, (N, L, 3), and those of the next one at each place.

    Many calls bring more calls (a Hawkes process in discrete time).
    """
    random = np.random.default_rng(seed)
    busy, memory, begin = random.uniform(0.5, 1.5, rows), np.zeros(rows), random.integers(0, 96, rows)
    turn = 2 * np.pi * (begin[:, None] + np.arange(length + 21)) / 96
    told = np.zeros((rows, length + 21))
    for at in range(length + 21):
        rate = busy * np.exp(0.8 * np.sin(turn[:, at])) + 0.45 * memory
        told[:, at] = random.poisson(rate)
        memory = 0.5 * memory + 0.5 * told[:, at]
    seen = np.log1p(told)
    seen = (seen - seen.mean()) / seen.std()
    x = np.stack([seen, np.sin(turn), np.cos(turn)], 2)[:, 20:-1]
    return split(floats(x), floats(told[:, 21:, None]), seed=seed)


@cache
def stages(kinds: int, channels: int, length: int, seed: int, rows: int = 700, noise: float = 0.8) -> Split:
    """Sensors of a sleeper, (N, L, C), and the stage at each place (N, L); a stage lasts for a while."""
    random = np.random.default_rng(seed)
    follow = 0.1 * random.dirichlet(np.full(kinds, 1.0), kinds) + 0.9 * np.eye(kinds)
    stage, x, y = random.integers(0, kinds, rows), [], []
    level, pitch = random.normal(size=(kinds, channels)), np.linspace(0.3, 1.6, kinds)
    phase = random.uniform(0, 6, (rows, 1))
    for _ in range(length):
        stage = (follow.cumsum(-1)[stage] < random.random((rows, 1))).sum(1).clip(max=kinds - 1)
        phase = phase + pitch[stage][:, None]
        x.append(0.5 * level[stage] + np.sin(phase + np.arange(channels)))
        y.append(stage)
    values = np.stack(x, 1) + noise * random.normal(size=(rows, length, channels))
    return split(floats(values / values.std()), torch.tensor(np.stack(y, 1)), seed=seed)


@cache
def source(module: str, window: int, step: int = 16, most: int = 40_000) -> Split:
    """Characters of one of Python's own modules, and the next one at each place.

    Every eighth piece of 500 characters is held out.
    """
    text = inspect.getsource(importlib.import_module(module))[:most]
    numbers = torch.tensor([CHARACTERS.index(one) for one in text if one in CHARACTERS])
    pieces = [one.unfold(0, window + 1, step) for one in numbers.split(500) if len(one) > window]
    train = torch.cat([one for at, one in enumerate(pieces) if at % 8 != 5])
    held = torch.cat(pieces[5::8])
    return (train[:, :-1], train[:, 1:]), (held[:, :-1], held[:, 1:])


@cache
def fields(
    classes: int, channels: int, seed: int, side: int = 16, rows: int = 1800, noise: float = 0.5
) -> Split:
    """Of which grain and lie is a random field? Noise through a class's filter: (N, C, side, side)."""
    random = np.random.default_rng(seed)
    y, turn = random.integers(0, classes, rows), np.pi * np.arange(classes) / classes
    down, across = np.meshgrid(*[np.fft.fftfreq(side)] * 2, indexing="ij")
    along = across * np.cos(turn)[:, None, None] + down * np.sin(turn)[:, None, None]
    aside = down * np.cos(turn)[:, None, None] - across * np.sin(turn)[:, None, None]
    grain = random.uniform(1.0, 1.6, (classes, 1, 1))
    keep = np.exp(-((6 * grain * along) ** 2) - (14 * aside) ** 2)
    waves = np.fft.fft2(random.normal(size=(rows, channels, side, side)))
    x = np.fft.ifft2(waves * keep[y][:, None]).real
    tint = random.normal(size=(classes, channels, 1, 1))
    x = x / x.std((1, 2, 3), keepdims=True) * (1 + 0.3 * tint[y])
    x += noise * random.normal(size=x.shape)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(y), seed=seed)


@cache
def baskets(goods: int, length: int, seed: int, rows: int = 4500) -> Split:
    """Goods of a basket (0 pads), and what it costs: two of a brand are cheaper (standardised)."""
    random = np.random.default_rng(seed)
    price, brand = np.exp(0.6 * random.normal(size=goods)), random.integers(0, 6, goods)
    off, often = random.uniform(0.2, 0.8, 6), random.dirichlet(np.full(goods, 1.5))
    x, y = np.zeros((rows, length), np.int64), np.zeros(rows)
    for row in range(rows):
        some = random.choice(goods, int(random.integers(length // 3, length + 1)), p=often)
        count = np.bincount(brand[some], minlength=6)
        x[row, : len(some)] = 1 + some
        y[row] = price[some].sum() - (off * np.maximum(count - 1, 0)).sum()
    y = (y - y.mean()) / y.std() + 0.15 * random.normal(size=rows)
    return split(torch.tensor(x), floats(y[:, None]), seed=seed)
