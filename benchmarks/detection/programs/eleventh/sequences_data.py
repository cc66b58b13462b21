"""Words, series, strokes, dates and pictures of the eleventh set. Token 0 pads."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["ASKED", "MASK", "SYMBOLS", "TOLD", "WORDS", "constellations", "dates", "reviews", "rivers",
           "strokes", "written"]  # fmt: skip

MASK, NOT, VERY, GOOD, BAD, THINGS, WORDS = 1, 8, 10, 12, 22, 32, 72
"""Of words: 2 to 7 say nothing, then come two that negate, two that add, and what is praised or blamed."""
SYMBOLS = "\0=0123456789 ./-abcdefghijlmnoprstuvy"
ASKED, TOLD = 11, 8
"""Places of a date as it was written, and of the digits of its year, month and day."""
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def _clause(random: np.random.Generator, topic: int, good: bool) -> tuple[list[int], list[int]]:  # noqa: FBT001
    """Words on one thing, and what is said of it at its own word (1 good, 2 bad), else 0."""
    thing = THINGS + 8 * topic + random.integers(0, 8)
    negated = random.random() < 0.2
    told = [thing, random.integers(4, 6)]
    told += [NOT + random.integers(0, 2)] * negated + [VERY + random.integers(0, 2)] * (random.random() < 0.3)
    told += [(GOOD if good != negated else BAD) + random.integers(0, 10), random.integers(6, 8)]
    before = [random.integers(2, 4)] * (random.random() < 0.6)
    return before + told, [0] * len(before) + [1 if good else 2] + [0] * (len(told) - 1)


@cache
def reviews(
    length: int, seed: int, rows: int = 2400, share: tuple[float, ...] = ()
) -> tuple[torch.Tensor, ...]:
    """Words of reviews (N, length), their topic of five, praise or not (N, 1), and tags of things.

    Most clauses are on the topic, and as kind as the whole; some negate. Tags (N, length) are 1 for a thing
    that is praised, 2 for one that is blamed, 0 for other words, and -100 for padding.
    """
    random = np.random.default_rng(seed)
    topic, kind = random.choice(5, rows, p=share or None), random.integers(0, 2, rows)
    x, y = np.zeros((rows, length), np.int64), np.full((rows, length), -100)
    for row in range(rows):
        words: list[int] = []
        tags: list[int] = []
        while len(words) < random.integers(length // 2, length):
            own = random.random() < 0.7
            good = bool(kind[row]) == (random.random() < 0.85)
            more = _clause(random, topic[row] if own else random.integers(0, 5), good)
            words, tags = words + more[0], tags + more[1]
        end = min(length, len(words))
        x[row, :end], y[row, :end] = words[:end], tags[:end]
    return torch.tensor(x), torch.tensor(topic), floats(kind[:, None]), torch.tensor(y)


@cache
def written(length: int, seed: int, rows: int = 2000) -> Split:
    """Reviews without an end, and the next word at each place."""
    random = np.random.default_rng(seed)
    found = np.zeros((rows, length + 1), np.int64)
    for row in range(rows):
        topic, words = random.integers(0, 5), []
        while len(words) <= length:
            words += _clause(random, topic, bool(random.random() < 0.5))[0]
        found[row] = words[: length + 1]
    both = torch.tensor(found)
    return split(both[:, :-1], both[:, 1:], seed=seed)


@cache
def rivers(window: int, ahead: int, seed: int, rows: int = 2400) -> Split:
    """Rain, warmth and flow of so many days (N, window, 3), and the flow of the days to come (N, ahead).

    Standardised (the flow: its logarithm). Rain falls as snow when it is cold, snow melts when it is warm,
    and two stores let water go, one in days, one in weeks; valleys differ in how fast.
    """
    random = np.random.default_rng(seed)
    days, snow = window + ahead + 40, np.zeros(rows)
    fast, slow, quick, late = np.ones(rows), 4 * np.ones(rows), *random.uniform(0.2, 0.5, (2, rows))
    season = random.uniform(0, 2 * np.pi, rows)
    seen = np.zeros((rows, days, 3))
    warm, wet = random.normal(size=rows), random.random(rows) < 0.4
    for day in range(days):
        wet = random.random(rows) < np.where(wet, 0.65, 0.2)
        warm = 0.85 * warm + 0.5 * random.normal(size=rows)
        heat = 4 * np.sin(season + day / 58) + 3 * warm + 3
        rain = np.where(wet, random.gamma(0.9, 3.0, rows), 0.0)
        melt = np.minimum(snow, 0.7 * np.maximum(heat, 0))
        snow = snow + np.where(heat < 0, rain, 0) - melt
        came = np.where(heat < 0, 0, rain) + melt
        fast, slow = fast + 0.6 * came, slow + 0.4 * came
        out = np.stack([quick * fast, 0.1 * late * slow])
        fast, slow = fast - out[0], slow - out[1]
        flow = np.log(out.sum(0) + 0.05) + 0.05 * random.normal(size=rows)
        seen[:, day] = np.stack([np.log1p(rain), heat, flow], 1)
    seen = scaled(seen[:, 40:].reshape(-1, 3)).reshape(rows, -1, 3)
    return split(floats(seen[:, :window]), floats(seen[:, window:, 2]), seed=seed)


@cache
def strokes(
    kinds: int, length: int, seed: int, rows: int = 2000, shake: float = 0.25
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How a pen moves as it draws a sign (N, length, 2), the sign, and its slant (N, 1), standardised.

    Signs are curves of sines; each hand leans, stretches and shakes them, and begins slow or fast.
    """
    random = np.random.default_rng(seed)
    wave = random.normal(size=(kinds, 2, 4)) / np.arange(1, 5)
    kind, slant = random.integers(0, kinds, rows), random.uniform(-0.8, 0.8, (rows, 1))
    haste = np.exp(0.25 * random.normal(size=(rows, 1)))
    time = np.linspace(0, 1, length + 1)[None] ** haste
    angle = np.pi * time[:, None, :, None] * np.arange(1, 5)
    mine = wave[kind] * (1 + shake * random.normal(size=(rows, 2, 4)))
    drawn = (np.sin(angle + np.array([0, 0.8])[:, None, None]) * mine[:, :, None]).sum(-1)
    drawn = drawn * np.exp(0.15 * random.normal(size=(rows, 2, 1)))
    drawn[:, 0] += slant * drawn[:, 1]
    moves = np.diff(drawn).transpose(0, 2, 1)
    moves = moves + 0.4 * moves.std() * random.normal(size=moves.shape)
    return floats(moves / moves.std()), torch.tensor(kind), floats(scaled(slant))


@cache
def dates(seed: int, rows: int = 8000) -> Split:
    """Dates as people write them, and behind each what is known of its digits; all of those (N, 8)."""
    random, x, y = np.random.default_rng(seed), [], []
    for _ in range(rows):
        year, month, day = random.integers(1950, 2040), random.integers(1, 13), random.integers(1, 29)
        text = random.choice([
            f"{day} {_MONTHS[month - 1]} {year}", f"{_MONTHS[month - 1]} {day} {year}",
            f"{day}.{month}.{year}", f"{year}/{month}/{day}", f"{month}-{day}-{year}",
        ])  # fmt: skip
        last = f"{year}{month:02}{day:02}"
        x.append([SYMBOLS.index(one) for one in text.ljust(ASKED, "\0") + "=" + last[:-1]])
        y.append([SYMBOLS.index(one) for one in last])
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def constellations(
    kinds: int, channels: int, seed: int, rows: int = 2800, noise: float = 0.5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures of stars (N, channels, 16, 16), which figure they make, and how it turned (N, 1).

    Five stars each, of colours of their own, turned and shifted a little, among two that are not of it.
    """
    random = np.random.default_rng(seed)
    figure, colour = random.uniform(-5, 5, (kinds, 5, 2)), random.uniform(0.3, 1, (kinds, 5, channels))
    kind, turn = random.integers(0, kinds, rows), random.uniform(-0.5, 0.5, (rows, 1))
    point, light = figure[kind], colour[kind] * random.uniform(0.6, 1.2, (rows, 5, 1))
    x = point[..., 0] * np.cos(turn) - point[..., 1] * np.sin(turn)
    y = point[..., 0] * np.sin(turn) + point[..., 1] * np.cos(turn)
    place = 7.5 + np.stack([x, y], 2) + random.normal(size=(rows, 1, 2))
    place = np.concatenate([place, random.uniform(1, 14, (rows, 2, 2))], 1)
    light = np.concatenate([light, random.uniform(0.3, 1, (rows, 2, channels))], 1)
    near = np.exp(-((place[..., None] - np.arange(16)) ** 2) / 1.6)
    sky = np.einsum("nsc,nsh,nsw->nchw", light, near[:, :, 1], near[:, :, 0])
    sky = sky + noise * sky.std() * random.normal(size=sky.shape)
    return floats(scaled(sky.reshape(-1, 1)).reshape(sky.shape)), torch.tensor(kind), floats(scaled(turn))
