"""Pictures of the eighth set, all drawn here: maps of wafers, flags, calls by time and pitch, arrows."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split
from benchmarks.detection.programs.fifth.pictures_data import _edge
from benchmarks.detection.programs.seventh.pictures_data import _standard
from benchmarks.detection.programs.sixth.pictures_data import SIDE, _one, _places

__all__ = ["arrows", "arrows_alone", "calls", "calls_cleaned", "flags", "wafers"]


@cache
def wafers(seed: int, rows: int = 2600, share: float = 0.6) -> Split:
    """Where do dies fail: in the middle, between, at the rim, in one corner, along a line, or anywhere?

    1 where a die fails, -1 where it does not, 0 beside the wafer; `share` of those in the pattern fail.
    """
    random = np.random.default_rng(seed)
    label = random.integers(0, 6, rows)
    down, right = _places(random, rows, np.pi, 0.0)
    far, wide = np.hypot(down, right), _one(random, rows, 0.8, 1.3)
    aside = np.hypot(down - 0.6, right)
    spots = [
        far < 0.4 * wide, abs(far - 0.5) < 0.16 * wide, far > 1.0 - 0.17 * wide, aside < 0.4 * wide,
        abs(down - _one(random, rows, -0.4, 0.4)) < 0.1 * wide, np.zeros_like(far) > 0,
    ]  # fmt: skip
    chance = np.where(np.choose(label[:, None, None], spots), share, _one(random, rows, 0.03, 0.15))
    x = np.where(far > 1.05, 0.0, np.where(random.random(far.shape) < chance, 1.0, -1.0))
    return split(floats(x)[:, None], torch.tensor(label), seed=seed)


PAINTS = np.array([[0.8, 0.1, 0.2], [0.1, 0.2, 0.7], [0.95, 0.95, 0.9], [0.95, 0.8, 0.1], [0.1, 0.5, 0.2]])


@cache
def flags(seed: int, rows: int = 2600, noise: float = 0.12) -> Split:
    """How is the flag parted, in whatever two of five colours? Waving, in any light: N x 3 x 14 x 14."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 6, rows)
    down, right = _places(random, rows, 0.15, 0.08)
    wave = 0.08 * np.sin(_one(random, rows, 2, 5) * right + _one(random, rows, 0, 6))
    down = down + wave
    kinds = [abs(down) < 0.33, abs(right) < 0.33, np.minimum(abs(down), abs(right + 0.25)) < 0.18,
             abs(abs(down) - abs(right)) < 0.28, np.hypot(down, right) < 0.5, down > right]  # fmt: skip
    inside = np.choose(label[:, None, None], kinds)[:, None]
    first = random.integers(0, 5, rows)
    paint = PAINTS[np.stack([first, (first + random.integers(1, 5, rows)) % 5])][..., None, None]
    x = (
        np.where(inside, paint[0], paint[1])
        * (1 + 2 * wave[:, None])
        * random.uniform(0.6, 1.2, (rows, 1, 1, 1))
    )
    return split(_standard(x + noise * random.normal(size=x.shape)), torch.tensor(label), seed=seed)


def _called(random: np.random.Generator, rows: int, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Up, down, level, over a hill, twice, or to and fro: how loud each pitch (down) is at each time."""
    label = random.integers(0, kinds, rows)
    line = np.linspace(-1, 1, SIDE)
    pitch, time = line[:, None], line[None, :] - _one(random, rows, -0.3, 0.3)
    steep = _one(random, rows, 0.6, 1.1)
    tracks = [steep * time, -steep * time, 0.0 * time, 0.4 - steep * time**2, 0.0 * time,
              0.45 * np.sin(6 * steep * time)]  # fmt: skip
    middle = np.choose(label[:, None, None], tracks) + _one(random, rows, -0.3, 0.3)
    loud = np.exp(-(((pitch - middle) / 0.13) ** 2))
    loud += (label == 4)[:, None, None] * np.exp(-(((pitch - middle - 0.5) / 0.13) ** 2))
    return loud * _edge((0.75 - abs(time)) / 0.1) * _one(random, rows, 0.6, 1.0), label


@cache
def calls(seed: int, rows: int = 2600, noise: float = 0.35, kinds: int = 6) -> Split:
    """Which bird calls? Before wind that is louder at low pitches."""
    random = np.random.default_rng(seed)
    x, label = _called(random, rows, kinds)
    x = x + noise * np.linspace(0.5, 1.5, SIDE)[:, None] * random.normal(size=x.shape)
    return split(_standard(x[:, None]), torch.tensor(label), seed=seed)


@cache
def calls_cleaned(seed: int, rows: int = 2000, noise: float = 0.35) -> Split:
    """Calls with wind and without, in the same units."""
    random = np.random.default_rng(seed)
    whole = _standard(_called(random, rows, 6)[0][:, None])
    return split(whole + floats(3 * noise * random.normal(size=whole.shape)), whole, seed=seed)


def _pointing(random: np.random.Generator, rows: int, turn: float = np.pi) -> tuple[np.ndarray, np.ndarray]:
    """Arrows from 0 to 1, and the sine and cosine of where they point."""
    angle = random.uniform(-turn, turn, rows)
    line, shift = np.linspace(-1, 1, SIDE), 0.12 * random.normal(size=(2, rows, 1, 1))
    down, right = line[:, None] - shift[0], line[None, :] - shift[1]
    c, s = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    along, across = c * right + s * down, -s * right + c * down
    shaft = np.minimum(0.2 - abs(across), 0.7 - abs(along))
    head = np.minimum(0.9 - along - abs(across), along - 0.2)
    ink = _edge(np.maximum(shaft, head) / 0.06) * _one(random, rows, 0.6, 1.0)
    return ink, np.stack([np.sin(angle), np.cos(angle)], 1)


@cache
def arrows(seed: int, rows: int = 2600) -> Split:
    """Where does the arrow point? Two numbers of a spread of one."""
    random = np.random.default_rng(seed)
    ink, way = _pointing(random, rows)
    x = ink + 0.3 * random.normal(size=ink.shape)
    return split(_standard(x[:, None]), floats(1.4142 * way), seed=seed)


@cache
def arrows_alone(seed: int, rows: int = 2000) -> Split:
    """Arrows to the right, some up or down, told by themselves: N x 1 x 14 x 14, from 0 to 1."""
    x = floats(_pointing(np.random.default_rng(seed), rows, 1.2)[0])[:, None]
    return split(x, x, seed=seed)
