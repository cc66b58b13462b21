"""Manuals, scenes and columns for the transformers of the seventh set."""

from __future__ import annotations

import importlib
from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["LETTERS", "columns", "manual", "numbered", "packages", "scenes"]

LETTERS = " \nabcdefghijklmnopqrstuvwxyz0123456789.,:;()[]'`*=-_/<>{}\"+"
PACKAGES = ("cluster", "preprocessing", "tree", "metrics")


@cache
def _told(package: str) -> str:
    """What scikit-learn says of the classes and functions of a package, in small letters."""
    every = importlib.import_module(f"sklearn.{package}")
    texts = sorted({getattr(every, name).__doc__ or "" for name in every.__all__})
    return "".join(one for one in "\n".join(texts).lower() if one in LETTERS).replace("    ", "")


@cache
def manual(package: str, window: int, step: int = 20, most: int = 50_000) -> Split:
    """Pieces of scikit-learn's manual, and the next character at each place; the end is held out."""
    numbers = torch.tensor([LETTERS.index(one) for one in _told(package)[:most]])
    rows = torch.stack([numbers[at : at + window + 1] for at in range(0, len(numbers) - window - 1, step)])
    cut = int(0.85 * len(rows))
    return (rows[:cut, :-1], rows[:cut, 1:]), (rows[cut + 2 :, :-1], rows[cut + 2 :, 1:])


@cache
def numbered(package: str, words: int) -> list[int]:
    """Words told of a package, numbered from 2 on by how usual they are in all packages; 1 is rare."""
    texts = {name: "".join(one if one.isalpha() else " " for one in _told(name)).split() for name in PACKAGES}
    found, counts = np.unique([one for text in texts.values() for one in text], return_counts=True)
    known = {str(found[at]): rank + 2 for rank, at in enumerate(np.argsort(-counts, kind="stable")[:words])}
    return [known.get(one, 1) for one in texts[package][:8000]]


@cache
def packages(length: int = 40, words: int = 350, block: int = 160) -> Split:
    """Which of four packages is a piece of scikit-learn's manual about? Its words: 0 pads, 1 is rare.

    Every fourth block of a text is held out.
    """
    random, parts = np.random.default_rng(711), ([], [])
    for kind, package in enumerate(PACKAGES):
        text = numbered(package, words)
        for place, begin in enumerate(range(0, len(text) - block, block)):
            for at in range(begin, begin + block - length + 1, 12):
                row = text[at : at + int(random.integers(length // 2, length + 1))]
                parts[place % 4 == 3].append((row + [0] * (length - len(row)), kind))
    for part in parts:
        random.shuffle(part)
    train, held = (
        (torch.tensor([row for row, _ in part]), torch.tensor([kind for _, kind in part])) for part in parts
    )
    return train, held


@cache
def scenes(classes: int, seed: int, side: int = 16, rows: int = 1600, noise: float = 0.8) -> Split:
    """What covers the ground (waves of some colour), under a thing that lies on it? (N, 3, side, side)."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, rows)
    wave = 2 * np.pi * random.uniform(0.08, 0.35, (classes, 1))
    turn = random.uniform(0, np.pi, (classes, 1))
    colour = random.normal(size=(classes, 3))
    across, down = np.meshgrid(np.arange(side), np.arange(side))
    angle = turn[y] + 0.15 * random.normal(size=(rows, 1))
    way = across.ravel() * np.cos(angle) + down.ravel() * np.sin(angle)
    high = np.sin(wave[y] * way + random.uniform(0, 2 * np.pi, (rows, 1)))
    x = high[:, None] * (0.6 + 0.4 * colour[y][..., None])
    at, size = random.uniform(3, side - 3, (2, rows, 1)), random.uniform(1.5, 4, (rows, 1))
    thing = np.exp(-((across.ravel() - at[0]) ** 2 + (down.ravel() - at[1]) ** 2) / size**2)
    x = x * (1 - thing[:, None]) + thing[:, None] * random.normal(size=(rows, 3, 1)) * 1.5
    x += noise * random.normal(size=x.shape)
    return split(floats(x / x.std()).unflatten(2, (side, side)), torch.tensor(y), seed=seed)


@cache
def columns(numbers: int, seed: int, rows: int = 3000, classes: int = 0) -> Split:
    """Columns of a survey, some skewed, and what hangs on pairs of them: a number, or one of some classes."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, numbers))
    x[:, ::3] = np.expm1(0.6 * x[:, ::3])
    x = (x - x.mean(0)) / x.std(0)
    hang = np.tanh(x @ random.normal(size=(numbers, 6)) / 1.5)
    y = hang[:, :3] * hang[:, 3:] * 2 + hang[:, :3]
    if classes:
        told = y @ random.normal(size=(3, classes)) + 0.4 * random.normal(size=(rows, classes))
        return split(floats(x), torch.tensor((told - told.mean(0)).argmax(1)), seed=seed)
    y = y.sum(1) + 0.3 * random.normal(size=rows)
    return split(floats(x), floats(((y - y.mean()) / y.std())[:, None]), seed=seed)
