"""Series, words, letters, pictures and tables of the ninth set. Token 0 pads."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["LETTERS", "addresses", "catchments", "cells", "proteins", "quakes", "reports", "rides", "soils",
           "sums", "trips"]  # fmt: skip

LETTERS = "\0abcdefghijklmnopqrstuvwxyz0123456789 ,."
SYLLABLES = ("ba", "ke", "lo", "mi", "ra", "ston", "ter", "wick", "ham", "den", "ford", "ley", "mar", "vil",
             "sun", "ol")  # fmt: skip


@cache
def quakes(
    kinds: int, channels: int, length: int, seed: int, rows: int = 1800, noise: float = 0.07
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Shaking of the ground on several axes, (N, L, C), what shook it, and how far away (standardised).

    A quick wave and later, the farther the more, a slow one; kinds differ in pitches, strength and decay.
    """
    random = np.random.default_rng(seed)
    kind, start = random.integers(0, kinds, rows), random.uniform(0.05, 0.3, rows) * length

    def each(least: float, most: float) -> np.ndarray:
        own = random.permutation(np.linspace(least, most, kinds))[kind]
        return own * np.exp(0.06 * random.normal(size=rows))

    quick, slow, fades, louder = each(1.3, 2.5), each(0.4, 1.0), each(4, 9), each(0.7, 1.8)
    far = random.uniform(0.1, 0.4, rows)
    loud = np.exp(0.2 * random.normal(size=rows) - far)
    x = noise * random.normal(size=(rows, length, channels))
    lean = random.normal(size=(2, rows, 1, channels))
    waves = ((0, quick, 1 + 0 * louder), (far * length, slow, louder))
    for lean_of, (later, pitch, size) in zip(lean, waves, strict=True):
        since = np.arange(length) - (start + later)[:, None]
        wave = np.sin(pitch[:, None] * since) * np.exp(-np.clip(since, 0, None) / fades[:, None])
        x += ((since >= 0) * wave * (size * loud)[:, None])[:, :, None] * (0.8 + 0.2 * np.tanh(lean_of))
    return floats(x / x.std()), torch.tensor(kind), floats(scaled(far[:, None]))


@cache
def rides(window: int, ahead: int, seed: int, days: int = 150) -> Split:
    """Bicycles lent in each hour, warmth, and the clock: (N, window, 4); those to come (N, ahead).

    Standardised. The last quarter of the days is held out.
    """
    random = np.random.default_rng(seed)
    hours = 24 * days
    clock, day = np.arange(hours) % 24, np.arange(hours) // 24
    weather = np.zeros(hours)
    for at in range(1, hours):
        weather[at] = 0.97 * weather[at - 1] + 0.24 * random.normal()
    warm = weather + 0.8 * np.sin(2 * np.pi * (clock - 9) / 24)
    work = np.exp(-((clock - 8) ** 2) / 3) + 1.2 * np.exp(-((clock - 17.5) ** 2) / 5)
    free = 1.1 * np.exp(-((clock - 14) ** 2) / 18)
    lent = np.where(day % 7 < 5, work, free) * np.exp(0.4 * warm) + 0.15
    lent = np.log(lent) + 0.15 * random.normal(size=hours)
    turn = 2 * np.pi * clock / 24
    every = np.stack([scaled(lent), scaled(warm), np.sin(turn), np.cos(turn)], 1)
    parts, last = [], int(0.75 * hours)
    for begin, end in ((0, last), (last, hours)):
        starts = np.arange(begin, end - window - ahead)[:, None]
        known, later = starts + np.arange(window), starts + window + np.arange(ahead)
        parts.append((floats(every[known]), floats(every[later, 0])))
    return parts[0], parts[1]


@cache
def addresses(length: int, seed: int, rows: int = 1500) -> Split:
    """Letters of addresses in several orders, and which part each belongs to (1 to 5; 0 between them)."""
    random = np.random.default_rng(seed)

    def name(least: int, most: int) -> str:
        return "".join(random.choice(SYLLABLES, int(random.integers(least, most))))

    ways, x, y = ("street", "st.", "road", "rd.", "lane", "way"), *np.zeros((2, rows, length), np.int64)
    for row in range(rows):
        house, code = str(random.integers(1, 200)), str(random.integers(10_000, 99_999))
        street = [(2, name(2, 4)), (2, str(random.choice(ways)))]
        town = [(4, name(1, 3)), (3, code)]
        parts = [(1, house), *street] if random.random() < 0.6 else [*street, (1, house)]
        parts += town if random.random() < 0.5 else town[::-1]
        parts += [(5, name(1, 3))] if random.random() < 0.6 else []
        at = 0
        for kind, word in parts:
            for letter in word + (" " if random.random() < 0.7 else ", "):
                if at < length:
                    x[row, at], y[row, at] = LETTERS.index(letter), kind * (letter not in " ,")
                    at += 1
        y[row, at:] = -100
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def catchments(length: int, seed: int, rows: int = 1400) -> Split:
    """Rain, warmth and size of a valley, (N, L, 3), and the river that leaves it at each place (N, L, 1).

    Snow is kept while it is cold; two stores in the ground, a quick and a slow one, empty themselves.
    """
    random = np.random.default_rng(seed)
    begin, size = random.uniform(0, 2 * np.pi, (rows, 1)), random.uniform(0.3, 1.0, (rows, 1))
    warm = np.sin(begin + np.arange(length) / 9) + 0.4 * random.normal(size=(rows, length))
    rain = random.gamma(0.6, 1.2, (rows, length)) * (random.random((rows, length)) < 0.4)
    snow, quick, slow = random.uniform(0, 1, (3, rows))
    river = np.zeros((rows, length))
    for at in range(length):
        cold = warm[:, at] < -0.3
        melts = np.where(cold, 0, np.minimum(snow, 0.5 * np.clip(warm[:, at] + 0.3, 0, None)))
        snow = snow + np.where(cold, rain[:, at], 0) - melts
        wet = np.where(cold, 0, rain[:, at]) + melts
        quick, slow = 0.6 * (quick + 0.7 * wet), 0.95 * (slow + 0.3 * wet)
        river[:, at] = (0.4 * quick + 0.12 * slow) * size[:, 0]
    river = river + 0.02 * random.normal(size=river.shape)
    x = np.stack([scaled(rain.ravel()), scaled(warm.ravel()), scaled(np.repeat(size, length))], 1)
    y = scaled(river.ravel()).reshape(rows, length, 1)
    return split(floats(x.reshape(rows, length, 3)), floats(y), seed=seed)


@cache
def proteins(length: int, seed: int, rows: int = 1200) -> Split:
    """Amino acids (1 to 20), and whether each lies in a coil, a helix or a strand (N, L).

    A helix turns its greasy side every 3.6 places, a strand every second one.
    """
    random = np.random.default_rng(seed)
    greasy = random.dirichlet(np.repeat((3.0, 0.3), 10))
    likes = random.dirichlet(np.full(20, 4.0), 3)
    x, y = np.zeros((2, rows, length), np.int64)
    for row in range(rows):
        at = 0
        while at < length:
            kind, long = random.integers(0, 3), int(random.integers(4, 12))
            for place in range(at, min(length, at + long)):
                turn = (0, 2 * np.pi / 3.6, np.pi)[kind] * (place - at)
                lean = 0.5 + 0.5 * np.cos(turn) if kind else 0.3
                chance = likes[kind] * (lean * greasy + (1 - lean) * greasy[::-1])
                x[row, place] = 1 + random.choice(20, p=chance / chance.sum())
                y[row, place] = kind
            at += long
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def sums(digits: int, seed: int, rows: int = 4000) -> Split:
    """Two numbers, ones first, side by side (N, digits, as one token of 100), and their sum, ones first."""
    random = np.random.default_rng(seed)
    one, two = random.integers(0, 10, (2, rows, digits))
    y, over = np.zeros((rows, digits), np.int64), np.zeros(rows, np.int64)
    for at in range(digits):
        whole = one[:, at] + two[:, at] + over
        y[:, at], over = whole % 10, whole // 10
    return split(torch.tensor(1 + 10 * one + two), torch.tensor(y), seed=seed)


@cache
def trips(places: int, length: int, seed: int, rows: int = 2000) -> Split:
    """Places that were visited one after the other (1 and up), and the next one at each place.

    Where one goes hangs on where one is, on the hour, and on where one lives, which one goes back to.
    """
    random = np.random.default_rng(seed)
    spot = random.uniform(0, 1, (places, 2))
    near = np.exp(-np.linalg.norm(spot[:, None] - spot, axis=2) / 0.12)
    draw = np.exp(1.2 * random.normal(size=(4, places)))
    home = random.integers(0, places, rows)
    x, here = np.zeros((rows, length + 1), np.int64), home
    for at in range(length + 1):
        x[:, at] = 1 + here
        chance = near[here] * draw[at % 4]
        chance[np.arange(rows), here] = 0
        chance /= chance.sum(1, keepdims=True)
        there = (chance.cumsum(1) < random.random((rows, 1))).sum(1).clip(max=places - 1)
        here = np.where((at % 4 == 3) | (random.random(rows) < 0.1), home, there)
    return split(torch.tensor(x[:, :-1]), torch.tensor(x[:, 1:]), seed=seed)


@cache
def reports(
    kinds: int, words: int, length: int, seed: int, rows: int = 2400, share: tuple[float, ...] = ()
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words of reports (2 and up; 1 is "not"), what each is about, and whether it is urgent (N, 1).

    A word is of the subject or of all; some words make it urgent, and "not" before one turns it round.
    """
    random = np.random.default_rng(seed)
    kind = random.choice(kinds, rows, p=share or None)
    use = random.dirichlet(np.full(words, 0.12), kinds + 1).cumsum(1)
    pull = random.normal(size=words) * (random.random(words) < 0.5)
    x, weight = np.zeros((rows, length), np.int64), np.zeros(rows)
    ends = random.integers(length // 2, length + 1, rows)
    for row in range(rows):
        sign = 1.0
        for at in range(ends[row]):
            if sign > 0 and random.random() < 0.12:
                x[row, at], sign = 1, -1.0
                continue
            word = np.searchsorted(use[kind[row] if random.random() < 0.5 else kinds], random.random())
            x[row, at] = 2 + min(word, words - 1)
            weight[row] += sign * pull[min(word, words - 1)]
            sign = 1.0
    urgent = weight + 0.3 * random.normal(size=rows) > np.median(weight)
    return torch.tensor(x), torch.tensor(kind), floats(urgent[:, None])


@cache
def cells(
    kinds: int, channels: int, seed: int, side: int = 16, rows: int = 1800, noise: float = 0.2
) -> Split:
    """Pictures of cells, (N, C, side, side): kinds differ in how long, large and speckled they are."""
    random = np.random.default_rng(seed)
    y = random.integers(0, kinds, rows)
    long, large = random.uniform(1.0, 2.6, kinds)[y], random.uniform(1.8, 3.2, kinds)[y]
    stained, turn = random.uniform(0.2, 1.0, (kinds, channels)), random.uniform(0, np.pi, rows)
    pitch = random.uniform(0.6, 1.8, kinds)[y]
    down, across = np.meshgrid(*[np.arange(side) - side / 2 + 0.5] * 2, indexing="ij")
    shift = random.uniform(-3, 3, (2, rows, 1, 1))
    down, across = down - shift[0], across - shift[1]
    along = across * np.cos(turn)[:, None, None] + down * np.sin(turn)[:, None, None]
    aside = down * np.cos(turn)[:, None, None] - across * np.sin(turn)[:, None, None]
    stretch, size = np.sqrt(long)[:, None, None], (large * random.uniform(0.8, 1.2, rows))[:, None, None]
    ring = (along / stretch) ** 2 + (aside * stretch) ** 2
    body = 1 / (1 + np.exp(2 * (np.sqrt(ring) - size)))
    spots = 1 + 0.5 * np.sin(pitch[:, None, None] * along) * np.sin(pitch[:, None, None] * aside)
    x = (body * spots)[:, None] * stained[y][:, :, None, None]
    x = x + noise * random.normal(size=x.shape)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(y), seed=seed)


@cache
def soils(columns: int, kinds: int, seed: int, rows: int = 3000) -> tuple[torch.Tensor, torch.Tensor]:
    """Measurements of soils, (N, columns), and what grows there best: products and bends of few of them."""
    random = np.random.default_rng(seed)
    mix = random.normal(size=(columns, columns)) * 0.4 + np.eye(columns)
    x = scaled(random.normal(size=(rows, columns)) @ mix)
    pair = random.integers(0, columns, (kinds, 3, 2))
    worth = np.stack([
        (x[:, one[:, 0]] * x[:, one[:, 1]]).sum(1) + np.abs(x[:, one[0]]).sum(1) for one in pair
    ], 1)  # fmt: skip
    return floats(x), torch.tensor((scaled(worth) + 0.3 * random.normal(size=(rows, kinds))).argmax(1))
