"""Texts, pictures, baskets and clouds of points for the transformers of the sixth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_sample_images

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.fifth.sequences_data import floats

__all__ = ["PRINTED", "baskets", "clouds", "manual", "modules", "photos"]

PRINTED = " \nabcdefghijklmnopqrstuvwxyz0123456789.,:;()[]'`*=-_/<>"
MODULES = ("linalg", "random", "ma", "polynomial")


@cache
def _told(module: str) -> str:
    """What NumPy says of the functions of a module, in small letters."""
    every = getattr(np, module)
    names = sorted(name for name in dir(every) if not name.startswith("_"))
    return "\n".join(sorted({getattr(every, name).__doc__ or "" for name in names})).lower()


@cache
def manual(window: int = 32, most: int = 60_000) -> Split:
    """Pieces of NumPy's manual, and the next character at each place."""
    text = "".join(one for one in _told("linalg") if one in PRINTED).replace("    ", "")[:most]
    numbers = torch.tensor([PRINTED.index(one) for one in text])
    rows = torch.stack([numbers[at : at + window + 1] for at in range(0, len(numbers) - window - 1, 24)])
    return split(rows[:, :-1], rows[:, 1:], seed=621)


@cache
def modules(length: int = 20, words: int = 400, block: int = 80) -> Split:
    """Which of four modules is a piece of NumPy's manual about? Its words: 0 pads, 1 is rare, 2 begins.

    Every fourth block of the text is held out.
    """
    texts = ["".join(one if one.isalpha() else " " for one in _told(name)).split()[:9000] for name in MODULES]
    found, counts = np.unique([one for text in texts for one in text], return_counts=True)
    known = {str(found[at]): rank + 3 for rank, at in enumerate(np.argsort(-counts, kind="stable")[:words])}
    random, parts = np.random.default_rng(622), ([], [])
    for kind, text in enumerate(texts):
        numbers = [known.get(one, 1) for one in text]
        for place, begin in enumerate(range(0, len(numbers) - block, block)):
            for at in range(begin, begin + block - length + 1, 10):
                row = [2, *numbers[at : at + int(random.integers(length // 2, length))]]
                parts[place % 4 == 3].append((row + [0] * (length - len(row)), kind))
    train, held = (
        (torch.tensor([row for row, _ in part]), torch.tensor([kind for _, kind in part])) for part in parts
    )
    return train, held


@cache
def photos(side: int = 16, each: int = 700) -> Split:
    """Tiles of two photographs, darker or lighter: the temple's, or the flower's? (N, 3, side, side)."""
    random = np.random.default_rng(623)
    tiles = []
    for photo in load_sample_images().images:
        for _ in range(each):
            top, left = (int(random.integers(0, most - 2 * side)) for most in photo.shape[:2])
            tile = photo[top : top + 2 * side : 2, left : left + 2 * side : 2] / 255.0
            tiles.append((tile - tile.mean()) * random.uniform(0.7, 1.3) + 0.15 * random.normal())
    x = np.stack(tiles).transpose(0, 3, 1, 2)
    x = x + 0.03 * random.normal(size=x.shape)
    return split(floats((x - x.mean()) / x.std()), torch.arange(2).repeat_interleave(each), seed=623)


@cache
def baskets(items: int = 50, length: int = 8, rows: int = 2400) -> Split:
    """Items (2 and on) bought together for one of eight dishes; of each basket two are hidden (1).

    Targets are the hidden items, and -100 elsewhere.
    """
    random = np.random.default_rng(624)
    part_of = random.dirichlet(np.full(items, 0.08), 8)
    y = np.stack([random.choice(items, length, p=part_of[one]) for one in random.integers(0, 8, rows)])
    y = torch.tensor(y + 2)
    hidden = torch.rand(y.shape, generator=torch.Generator().manual_seed(624)).argsort(1) < 2
    return split(torch.where(hidden, 1, y), torch.where(hidden, y, -100), seed=624)


@cache
def clouds(rows: int = 1500, points: int = 24) -> Split:
    """On what do points without order lie: a ring, a square, a cross, two lumps or an arc? (N, P, 2)."""
    random = np.random.default_rng(625)
    y, x = random.integers(0, 5, rows), np.zeros((rows, points, 2))
    for cloud, kind in zip(x, y, strict=True):
        t, s = random.uniform(-1, 1, (2, points))
        side = random.integers(0, 4, points)
        turn = side * np.pi / 2
        cloud[:] = [
            np.stack([np.cos(np.pi * t), np.sin(np.pi * t)], 1),
            np.stack([np.cos(turn) - s * np.sin(turn), np.sin(turn) + s * np.cos(turn)], 1) * 0.85,
            np.stack([np.where(side < 2, t, 0), np.where(side < 2, 0, t)], 1) * 1.2,
            random.normal([0, 0], 0.25, (points, 2)) + np.stack([np.where(side < 2, -0.8, 0.8), 0 * t], 1),
            np.stack([np.cos(1.3 * t) - 0.5, np.sin(1.3 * t)], 1) * 1.2,
        ][kind]  # fmt: skip
        angle = random.uniform(0, 2 * np.pi)
        turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        cloud[:] = cloud @ turned * random.uniform(0.8, 1.2) + 0.08 * random.normal(size=(points, 2))
    return split(floats(x / x.std()), torch.tensor(y), seed=625)
