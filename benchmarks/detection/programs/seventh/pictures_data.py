"""Pictures of the seventh set, all drawn here: stamps, weaves, moons, islands, and what lies on a table."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split
from benchmarks.detection.programs.sixth.pictures_data import SIDE, _one, _places

__all__ = ["alone", "holed", "islands", "moons", "stamps", "things", "weaves"]


def _standard(x: np.ndarray) -> torch.Tensor:
    """Each channel standardised over all pictures: N x C x 14 x 14."""
    return floats((x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True))


@cache
def stamps(seed: int, count: int, rows: int = 2200, channels: int = 1, noise: float = 0.5) -> Split:
    """Which stamp is it? Five light or dark spots of each, shifted, turned, pale or strong."""
    random = np.random.default_rng(seed)
    spots = random.uniform(-0.8, 0.8, (count, 5, 2))
    ink = random.choice([-1, 1], (count, 5, channels)) * random.uniform(0.5, 1.0, (count, 5, channels))
    label = random.integers(0, count, rows)
    down, right = _places(random, rows, 0.3)
    x = np.zeros((rows, channels, SIDE, SIDE))
    for spot in range(5):
        d, r = spots[label, spot].T[..., None, None]
        near = np.exp(-((down - d) ** 2 + (right - r) ** 2) / 0.06)
        x += ink[label, spot][..., None, None] * near[:, None]
    x = x * random.uniform(0.6, 1.2, (rows, 1, 1, 1)) + 0.35 * noise * random.normal(size=x.shape)
    return split(_standard(x), torch.tensor(label), seed=seed)


def _woven(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Plain, twill, satin or basket: whether the thread along lies above the one across, in 0 to 1."""
    label = random.integers(0, 4, rows)
    wide, kind = random.uniform(1.2, 2.2, (rows, 1, 1)), label[:, None, None]
    line = np.arange(SIDE)
    i = np.floor(line[:, None] / wide + random.integers(0, 20, (rows, 1, 1))).astype(int)
    j = np.floor(line[None, :] / wide + random.integers(0, 20, (rows, 1, 1))).astype(int)
    above = np.choose(
        kind, [(i + j) % 2 == 0, (i + j) % 4 < 2, (2 * i + j) % 5 == 0, (i // 2 + j // 2) % 2 == 0]
    )
    return above * _one(random, rows, 0.6, 1.0), label


@cache
def weaves(seed: int, rows: int = 2200, noise: float = 0.25) -> Split:
    """How is the cloth woven? In any light."""
    random = np.random.default_rng(seed)
    x, label = _woven(random, rows)
    x = x + _one(random, rows, -0.2, 0.2) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), torch.tensor(label), seed=seed)


def _lit(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A ball lit from one side: the picture, and where its shadow begins and how far it leans."""
    edge, lean = random.uniform(-0.9, 0.9, rows), random.uniform(-0.8, 0.8, rows)
    line = np.linspace(-1, 1, SIDE)
    down, right = np.meshgrid(line, line, indexing="ij")
    big = _one(random, rows, 0.7, 0.95)
    shift = 0.08 * random.normal(size=(2, rows, 1, 1))
    c, s = np.cos(lean)[:, None, None], np.sin(lean)[:, None, None]
    d, r = (
        (c * (down - shift[0]) - s * (right - shift[1])) / big,
        (s * (down - shift[0]) + c * (right - shift[1])) / big,
    )
    far = 1 - d**2 - r**2
    dark = r - edge[:, None, None] * np.sqrt(far.clip(0))
    x = 1 / (1 + np.exp(-12 * dark)) / (1 + np.exp(-12 * far))
    return x * _one(random, rows, 0.7, 1.0), np.stack([edge / 0.52, lean / 0.46], 1)


@cache
def moons(seed: int, rows: int = 2200) -> Split:
    """How much of the moon is lit, and how far does it lean? Two standardised numbers."""
    random = np.random.default_rng(seed)
    x, y = _lit(random, rows)
    return split(_standard((x + 0.12 * random.normal(size=x.shape))[:, None]), floats(y), seed=seed)


@cache
def islands(seed: int, rows: int = 1800) -> Split:
    """Where is land? Shares of 0 or 1 for each pixel, by rough light and dark from above."""
    random = np.random.default_rng(seed)
    height = -0.55
    for _ in range(5):
        down, right = _places(random, rows, np.pi, 0.5)
        height = height + np.exp(-(down**2 + (right * _one(random, rows, 0.6, 1.6)) ** 2) / 0.12)
    land = height > 0
    rough = random.normal(size=(rows, SIDE, SIDE))
    x = np.where(land, 0.5 + 0.45 * rough, -0.3 + 0.45 * np.roll(rough, 1, 2))
    x = x * _one(random, rows, 0.7, 1.3) + _one(random, rows, -0.2, 0.2)
    return split(_standard(x[:, None]), floats(land)[:, None], seed=seed)


THINGS = """
..#.. .###. ##### #...# #####
..#.. #...# ...#. .#.#. #....
##### #...# ..#.. ..#.. #....
..#.. #...# .#... .#.#. #....
..#.. .###. ##### #...# #####
"""


@cache
def things(seed: int, rows: int = 2200) -> Split:
    """Which of five small things lie on the table (yes or no, N x 5)? Anywhere, some over others."""
    random = np.random.default_rng(seed)
    drawn = np.array(
        [[[one == "#" for one in part] for part in line.split()] for line in THINGS.split("\n")[1:-1]]
    )
    there = random.random((rows, 5)) < 0.4
    x = 0.3 * random.normal(size=(rows, SIDE, SIDE))
    for picture, kinds in zip(x, there, strict=True):
        for kind in np.flatnonzero(kinds):
            d, r = random.integers(0, SIDE - 4, 2)
            picture[d : d + 5, r : r + 5] += random.uniform(0.8, 1.2) * drawn[:, kind]
    return split(_standard(x[:, None]), floats(there), seed=seed)


@cache
def alone(kind: str, seed: int, rows: int = 1800) -> Split:
    """Weaves or moons without noise, told by themselves: N x 1 x 14 x 14, from 0 to 1."""
    x = floats((_woven if kind == "weaves" else _lit)(np.random.default_rng(seed), rows)[0])[:, None]
    return split(x, x, seed=seed)


@cache
def holed(seed: int, rows: int = 1800) -> Split:
    """Cloth with a square hole of five pixels and some noise, and without."""
    random = np.random.default_rng(seed)
    whole = _standard(_woven(random, rows)[0][:, None])
    x = whole + 0.3 * floats(random.normal(size=whole.shape))
    for picture, (d, r) in zip(x, random.integers(0, SIDE - 4, (rows, 2)), strict=True):
        picture[:, d : d + 5, r : r + 5] = 0.0
    return split(x, whole, seed=seed)
