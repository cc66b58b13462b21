"""Data of the held-out programs: made by scikit-learn, cut from its pictures, or made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn import datasets

from benchmarks.detection.programs.data import Split, split

__all__ = [
    "added", "bags", "bins", "blobs", "brackets", "circles", "counted", "digits", "forecast", "friedman",
    "made_classes", "moons", "noisy_patches", "several_labels", "textures",
]  # fmt: skip


def _pair(x: np.ndarray, y: np.ndarray, *, numbers: bool = False) -> Split:
    """Standardised columns; numbers are standardised as targets, too, and get a column."""
    x = (x - x.mean(0)) / (x.std(0) + 1e-9)
    if not numbers:
        return split(torch.tensor(x, dtype=torch.float32), torch.tensor(y).long())
    y = (y - y.mean()) / y.std()
    return split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).reshape(-1, 1))


@cache
def moons() -> Split:
    return _pair(*datasets.make_moons(1200, noise=0.2, random_state=21))


@cache
def circles() -> Split:
    return _pair(*datasets.make_circles(1200, noise=0.08, factor=0.5, random_state=22))


@cache
def blobs() -> Split:
    """Four clouds that overlap a little; one has a third of the others' points."""
    x, y = datasets.make_blobs([400, 400, 400, 130], n_features=6, cluster_std=2.5, random_state=23)
    return _pair(x, y)


@cache
def made_classes() -> Split:
    return _pair(
        *datasets.make_classification(
            2000, 24, n_informative=10, n_redundant=4, n_classes=5, class_sep=1.4, random_state=24
        )
    )


@cache
def friedman() -> Split:
    return _pair(*datasets.make_friedman1(1400, 10, noise=0.8, random_state=25), numbers=True)


@cache
def bins() -> Split:
    """A rolled sheet in space; the class is how far along it a point lies."""
    x, place = datasets.make_swiss_roll(1500, noise=0.3, random_state=26)
    return _pair(x, np.digitize(place, np.quantile(place, [0.2, 0.4, 0.6, 0.8])))


@cache
def several_labels() -> Split:
    """Samples with several labels each."""
    x, y = datasets.make_multilabel_classification(1500, 20, n_classes=6, n_labels=2, random_state=27)
    x = (x - x.mean(0)) / (x.std(0) + 1e-9)
    return split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


@cache
def digits() -> Split:
    """Pictures of digits with one channel."""
    found = datasets.load_digits()
    x = torch.tensor((found.images - 4.88) / 6.02, dtype=torch.float32).unsqueeze(1)
    return split(x, torch.tensor(found.target), seed=5)


def _patches(side: int, each: int, seed: int) -> list[np.ndarray]:
    """Grey squares cut at random out of both pictures, as shares of white."""
    random = np.random.default_rng(seed)
    found = []
    for name in ("china.jpg", "flower.jpg"):
        grey = datasets.load_sample_image(name).astype(np.float32).mean(2) / 255.0
        rows = random.integers(0, grey.shape[0] - side, each)
        columns = random.integers(0, grey.shape[1] - side, each)
        cut = [grey[r : r + side, c : c + side] for r, c in zip(rows, columns, strict=True)]
        found.append(np.stack(cut))
    return found


@cache
def textures() -> Split:
    """12 x 12 patches: of the temple or of the flower?"""
    temple, flower = _patches(12, 700, 28)
    x = np.concatenate([temple, flower])[:, None]
    return split(torch.tensor((x - x.mean()) / x.std()), torch.arange(2).repeat_interleave(700).float())


@cache
def noisy_patches() -> Split:
    """8 x 8 patches with noise, and without."""
    x = np.concatenate(_patches(8, 700, 29))[:, None]
    clean = torch.tensor((x - x.mean()) / x.std())
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(30))
    return split(clean + 0.5 * noise, clean)


@cache
def added(length: int = 16) -> Split:
    """Rows of numbers, two of which are marked: their sum."""
    random = np.random.default_rng(31)
    x = np.zeros((1600, length, 2), np.float32)
    x[..., 0] = random.uniform(-1, 1, (1600, length))
    y = np.zeros((1600, 1), np.float32)
    for row in range(1600):
        places = random.choice(length, 2, replace=False)
        x[row, places, 1] = 1.0
        y[row] = x[row, places, 0].sum()
    return split(torch.tensor(x), torch.tensor(y / y.std()))


@cache
def brackets(length: int = 14) -> Split:
    """Brackets that are balanced, or have one pair exchanged. Token 0 pads."""
    random = np.random.default_rng(32)
    rows = np.zeros((2000, length), np.int64)
    label = random.integers(0, 2, 2000)
    for row in range(2000):
        depth, text = 0, []
        count = length - 2 * int(random.integers(0, 3))
        for place in range(count):
            opens = depth == 0 or (depth < count - place and random.random() < 0.5)
            depth += 1 if opens else -1
            text.append(2 if opens else 3)
        if label[row] == 0:
            one = int(random.integers(0, count))
            text[one] = 5 - text[one]
        rows[row, :count] = text
    return split(torch.tensor(rows), torch.tensor(label))


@cache
def counted(length: int = 12) -> Split:
    """Rows of tokens; the class is the commonest of four, between fillers (token 1)."""
    random = np.random.default_rng(33)
    label = random.integers(0, 4, 2000)
    x = random.integers(1, 6, (2000, length))
    x = np.where(random.random((2000, length)) < 0.3, label[:, None] + 2, x)
    counts = (x[..., None] == np.arange(2, 6)).sum(1)
    clear = np.sort(counts)[:, -1] > np.sort(counts)[:, -2]
    return split(torch.tensor(x[clear]), torch.tensor(counts[clear].argmax(1)))


@cache
def forecast(window: int = 32) -> Split:
    """A season, a trend and autoregressive noise: the next value of a window."""
    random = np.random.default_rng(34)
    time = np.arange(2600)
    noise = np.zeros(2600)
    for step in range(2, 2600):
        noise[step] = 0.6 * noise[step - 1] - 0.3 * noise[step - 2] + 0.2 * random.normal()
    series = np.sin(2 * np.pi * time / 24) + 0.5 * np.sin(2 * np.pi * time / 7) + noise
    starts = np.arange(0, len(series) - window - 1, 2)
    rows = series[starts[:, None] + np.arange(window + 1)] / series.std()
    return split(
        torch.tensor(rows[:, None, :-1], dtype=torch.float32), torch.tensor(rows[:, -1:], dtype=torch.float32)
    )


@cache
def bags(items: int = 60, size: int = 10) -> Split:
    """Baskets of items, each kind of customer with likings of its own."""
    random = np.random.default_rng(35)
    likings = random.dirichlet(np.full(items, 0.15), 4)
    label = random.integers(0, 4, 1600)
    rows = np.stack([random.choice(items, size, p=likings[one]) for one in label]) + 1
    return split(torch.tensor(rows), torch.tensor(label))
