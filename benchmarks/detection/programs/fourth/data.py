"""Tables and pictures of the fourth held-out set, nearly all of them made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn import datasets

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = [
    "banners",
    "branches",
    "checkers",
    "crossed",
    "dots",
    "few_wines",
    "grades",
    "gratings",
    "lengths",
    "lifetimes",
    "many_labels",
    "mixed_tasks",
    "outliers",
    "quads",
    "queries",
    "segments",
    "spirals",
    "strokes",
    "unseen",
    "waits",
    "weak",
    "zeros",
]  # fmt: skip


@cache
def grades(rows: int = 2400) -> Split:
    """Five grades in order, by a bent score and noise."""
    random = np.random.default_rng(201)
    x = random.normal(size=(rows, 8))
    score = x[:, 0] + np.sin(2 * x[:, 1]) + 0.6 * x[:, 2] * x[:, 3] + 0.3 * random.logistic(size=rows)
    return split(floats(x), torch.tensor(np.digitize(score, np.quantile(score, [0.15, 0.4, 0.7, 0.9]))),
                 seed=201)  # fmt: skip


@cache
def lifetimes(rows: int = 2000) -> Split:
    """How long something lasted, and whether it had ended when one stopped looking."""
    random = np.random.default_rng(202)
    x = random.normal(size=(rows, 6))
    risk = 1.2 * x[:, 0] - x[:, 1] + 0.8 * np.abs(x[:, 2]) + 0.7 * x[:, 3] * x[:, 4]
    lasted, seen = random.exponential(np.exp(-risk)), random.exponential(2.0, rows)
    return split(floats(x), floats(np.stack([np.minimum(lasted, seen), lasted <= seen], 1)), seed=202)


@cache
def waits(rows: int = 2400) -> Split:
    """Times with a long tail that is longer for some."""
    random = np.random.default_rng(203)
    x = random.uniform(-1, 1, (rows, 5))
    spread = 0.15 + 0.6 / (1 + np.exp(-4 * x[:, 1]))
    y = np.exp(0.8 * x[:, 0] + 0.5 * np.sin(3 * x[:, 2]) + spread * random.normal(size=rows))
    return split(floats(x), floats(y)[:, None], seed=203)


@cache
def branches(rows: int = 2400) -> Split:
    """An arm's angle by where its hand is: often there are two or three answers."""
    random = np.random.default_rng(204)
    y = random.uniform(0, 1, rows)
    x = y + 0.3 * np.sin(2 * np.pi * y) + 0.04 * random.normal(size=rows)
    more = random.normal(size=(rows, 2))
    return split(floats(scaled(np.column_stack([x, more]))), floats(scaled(y[:, None])), seed=204)


@cache
def zeros(rows: int = 2400) -> Split:
    """Counts; four of ten are zero whatever was known."""
    random = np.random.default_rng(205)
    x = random.normal(size=(rows, 6))
    rate = np.exp(0.8 + 0.6 * x[:, 0] - 0.5 * x[:, 1] + 0.3 * np.tanh(2 * x[:, 2]))
    nothing = random.random(rows) < 1 / (1 + np.exp(0.4 + 1.5 * x[:, 3]))
    return split(floats(x), floats(np.where(nothing, 0, random.poisson(rate)))[:, None], seed=205)


@cache
def queries(rows: int = 1600, documents: int = 10) -> Split:
    """Ten documents to each question, and how well each of them answers it."""
    random = np.random.default_rng(206)
    x = random.normal(size=(rows, documents, 6))
    y = x[..., 0] + np.maximum(x[..., 1], x[..., 2]) + 0.5 * x[..., 3] * x[..., 4]
    return split(floats(x), floats(y + 0.25 * random.normal(size=y.shape)), seed=206)


@cache
def spirals(rows: int = 2000) -> Split:
    """Points of three arms that turn about each other once."""
    random = np.random.default_rng(207)
    label, far = random.integers(0, 3, rows), random.uniform(0.15, 1, rows)
    angle = 6 * far + 2 * np.pi * label / 3
    x = np.stack([far * np.cos(angle), far * np.sin(angle)], 1) + 0.03 * random.normal(size=(rows, 2))
    return split(floats(scaled(x)), torch.tensor(label), seed=207)


@cache
def weak(rows: int = 6000) -> Split:
    """Yes or no by thirty numbers that together tell hardly more than nothing."""
    random = np.random.default_rng(208)
    x = random.normal(size=(rows, 30))
    y = random.random(rows) < 1 / (1 + np.exp(-0.16 * x @ random.choice([-1, 1], 30)))
    return split(floats(x), floats(y)[:, None], seed=208)


@cache
def mixed_tasks(rows: int = 2200) -> Split:
    """An amount and one of three kinds, both by the same ten numbers: two columns."""
    random = np.random.default_rng(209)
    x = random.normal(size=(rows, 10))
    hidden = np.tanh(x @ random.normal(size=(10, 5)) / 2)
    amount = scaled(hidden @ random.normal(size=(5, 1)) + 0.2 * random.normal(size=(rows, 1)))
    kind = (hidden @ random.normal(size=(5, 3)) + 0.2 * random.normal(size=(rows, 3))).argmax(1)
    return split(floats(x), floats(np.column_stack([amount, kind])), seed=209)


@cache
def many_labels(rows: int = 2400, labels: int = 12) -> Split:
    """Twelve flags, each set for between one row of thirty and one of three."""
    random = np.random.default_rng(210)
    x = random.normal(size=(rows, 20))
    score = np.tanh(x @ random.normal(size=(20, 8)) / 3) @ random.normal(size=(8, labels))
    score += 0.3 * random.normal(size=score.shape)
    common = np.linspace(1 / 30, 1 / 3, labels)
    limits = np.array([np.quantile(score[:, k], 1 - share) for k, share in enumerate(common)])
    return split(floats(x), floats(score > limits), seed=210)


@cache
def few_wines() -> Split:
    """Sixty wines of three growers to learn from."""
    found = datasets.load_wine()
    (x, y), held = split(floats(scaled(found.data)), torch.tensor(found.target), held=0.5, seed=211)
    return (x[:60], y[:60]), held


@cache
def outliers(rows: int = 2000) -> Split:
    """A bent surface; one target of fifteen is far off, in the train rows only."""
    random = np.random.default_rng(212)
    x = random.uniform(-1, 1, (rows, 4))
    y = np.cos(3 * x[:, 0]) + x[:, 1] ** 2 - x[:, 2] * x[:, 3] + 0.05 * random.normal(size=rows)
    (x, y), held = split(floats(x), floats(scaled(y))[:, None], seed=212)
    source = torch.Generator().manual_seed(212)
    off = torch.rand(len(y), 1, generator=source) < 1 / 15
    return (x, y + off * 12 * torch.randn(len(y), 1, generator=source)), held


@cache
def crossed(rows: int = 2600) -> Split:
    """Four classes, each by a net of its own region: work for experts."""
    random = np.random.default_rng(213)
    x = random.normal(size=(rows, 12))
    region = 2 * (x[:, 0] > 0) + (x[:, 1] > 0)
    ways = random.normal(size=(4, 12, 4))
    score = np.einsum("ni,nik->nk", x, ways[region]) + 0.3 * random.normal(size=(rows, 4))
    return split(floats(x), torch.tensor(score.argmax(1)), seed=213)


@cache
def checkers(rows: int = 3000) -> Split:
    """Points on the dark fields of a board, without labels."""
    random = np.random.default_rng(214)
    column = random.integers(0, 4, rows)
    row = 2 * random.integers(0, 2, rows) + column % 2
    x = np.stack([column, row], 1) + random.random((rows, 2)) - 2
    return split(floats(x), torch.zeros(rows, 1), seed=214)


@cache
def quads(rows: int = 2400) -> Split:
    """Five numbers, each depending on those before it; there is nothing to tell but how likely they are."""
    random = np.random.default_rng(215)
    x = random.normal(size=(rows, 5))
    for place in range(1, 5):
        x[:, place] = np.sin(2 * x[:, place - 1]) + 0.4 * x[:, 0] + 0.3 * x[:, place]
    return split(floats(scaled(x)), torch.zeros(rows, 1), seed=215)


@cache
def unseen(kinds: int = 60, each: int = 40) -> Split:
    """Sixty kinds of things in sixteen dimensions; those held out are of kinds that are not in training."""
    random = np.random.default_rng(216)
    middle = random.normal(size=(kinds, 4))
    code = middle[:, None] + 0.35 * random.normal(size=(kinds, each, 4))
    bent = np.tanh(code @ random.normal(size=(4, 24))) @ random.normal(size=(24, 16))
    noise = 4.0 * random.normal(size=(kinds, each, 2)) @ random.normal(size=(2, 16))
    x = floats(scaled((bent + noise).reshape(-1, 16)))
    label = torch.arange(kinds).repeat_interleave(each)
    cut = each * 45
    return (x[:cut], label[:cut]), (x[cut:], label[cut:])


BARS = ((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 1, 1), (1, 0, 1, 1), (1, 0, 2, 0), (1, 1, 2, 1), (2, 0, 2, 1))
"""From corner to corner of a display of seven bars: top, left, right, middle, left, right, bottom."""
LIT = ("012456", "25", "02346", "02356", "1235", "01356", "013456", "025", "0123456", "012356")


@cache
def _display(rows: int, seed: int, side: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as a display of seven bars shows them: strokes from 0 to 1, and which numbers they are."""
    random = np.random.default_rng(seed)
    label, pictures = random.integers(0, 10, rows), np.zeros((rows, side, side))
    for picture, number in zip(pictures, label, strict=True):
        top, left = random.integers(1, 4, 2)
        tall, wide = random.integers(3, 5), random.integers(4, 6)
        for bar in LIT[number]:
            r, c, below, right = BARS[int(bar)]
            picture[top + r * tall : top + below * tall + 1, left + c * wide : left + right * wide + 1] = (
                random.uniform(0.7, 1.0)
            )
    return pictures, label


@cache
def segments(rows: int = 2400, noise: float = 0.25) -> Split:
    """Which number does a display of seven bars show? Noisy, 12 x 12, one channel."""
    pictures, label = _display(rows, 217)
    x = pictures + noise * np.random.default_rng(218).normal(size=pictures.shape)
    return split(floats((x - x.mean()) / x.std())[:, None], torch.tensor(label), seed=217)


@cache
def strokes(rows: int = 1200) -> Split:
    """Which pixels are the number's? Lines that are none of it lie across."""
    pictures, _ = _display(rows, 219)
    random = np.random.default_rng(220)
    x = 0.7 * pictures + 0.3 * random.normal(size=pictures.shape)
    for one in x:
        one[random.integers(0, 12)] += 0.5
        one[:, random.integers(0, 12)] += 0.5
    return split(floats((x - x.mean()) / x.std())[:, None], floats(pictures > 0.5)[:, None], seed=219)


def _gratings(rows: int, seed: int, side: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy waves of any phase and strength: which of six directions, and how many turns a pixel."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 6, rows)
    angle = (np.pi * label / 6 + 0.06 * random.normal(size=rows))[:, None, None]
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    along = np.cos(angle) * row + np.sin(angle) * column
    rate, phase = random.uniform(0.8, 1.8, (rows, 1, 1)), random.uniform(0, 6.3, (rows, 1, 1))
    x = random.uniform(0.6, 1.4, (rows, 1, 1)) * np.sin(rate * along + phase)
    x += 0.5 * random.normal(size=x.shape)
    return x / x.std(), label, rate.ravel()


@cache
def gratings(rows: int = 2000) -> Split:
    """In which of six directions do waves go? Any wave length and place, in noise."""
    x, label, _ = _gratings(rows, 221)
    return split(floats(x)[:, None], torch.tensor(label), seed=221)


@cache
def lengths(rows: int = 2000) -> Split:
    """Waves again: are they long, middling or short, whatever their direction?"""
    x, _, rate = _gratings(rows, 224)
    return split(floats(x)[:, None], torch.tensor(np.digitize(rate, [1.1, 1.45])), seed=224)


@cache
def dots(rows: int = 1600, side: int = 16) -> Split:
    """How many soft dots (one to nine) are there?"""
    random = np.random.default_rng(222)
    count, x = random.integers(1, 10, rows), np.zeros((rows, side, side))
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    for picture, many in zip(x, count, strict=True):
        for r, c in random.uniform(1, side - 2, (many, 2)):
            picture[:] += np.exp(-((row - r) ** 2 + (column - c) ** 2) / 1.5)
    x += 0.1 * random.normal(size=x.shape)
    return split(floats((x - x.mean()) / x.std())[:, None], floats(count)[:, None], seed=222)


@cache
def banners(rows: int = 1800, side: int = 12) -> Split:
    """How is a banner of three colours (any) laid out: lying, standing, crossed, slanted or framed?"""
    random = np.random.default_rng(223)
    label, colours = random.integers(0, 5, rows), random.normal(size=(rows, 3, 3))
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    middle = side / 2 - 0.5
    edge = np.maximum(np.abs(row - middle), np.abs(column - middle))
    x = np.zeros((rows, 3, side, side))
    for picture, kind, three in zip(x, label, colours, strict=True):
        place, wide = random.uniform(-1.5, 1.5, 2), random.uniform(1.2, 2.2)
        parts = (
            np.digitize(row - middle - place[0], [-wide, wide]),
            np.digitize(column - middle - place[0], [-wide, wide]),
            (np.abs(row - middle - place[0]) < wide) + 2 * (np.abs(column - middle - place[1]) < wide),
            np.digitize(row + column - 2 * middle - place[0], [-1.5 * wide, 1.5 * wide]),
            np.digitize(edge, [wide, 2 * wide]),
        )[kind]
        picture[:] = three[:, np.minimum(parts, 2)]
    return split(floats(x + 0.5 * random.normal(size=x.shape)), torch.tensor(label), seed=223)
