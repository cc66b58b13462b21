"""Pictures of the ninth set, all drawn here: dice, buttons, dials, prints of fingers."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split
from benchmarks.detection.programs.fifth.pictures_data import _edge
from benchmarks.detection.programs.seventh.pictures_data import _standard
from benchmarks.detection.programs.sixth.pictures_data import _one, _places

__all__ = ["buttons", "buttons_alone", "dials", "dials_alone", "dice", "prints", "prints_cleaned"]

CORNERS = [(-0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (0.5, -0.5)]
PIPS = [[(0.0, 0.0)], CORNERS[:2], [(0.0, 0.0), *CORNERS[:2]], CORNERS, [(0.0, 0.0), *CORNERS],
        [*CORNERS, (0.0, -0.5), (0.0, 0.5)]]  # fmt: skip


def _spots(down: np.ndarray, right: np.ndarray, places: list[tuple[float, float]], wide: float) -> np.ndarray:
    """1 within one of the spots."""
    far = np.min([np.hypot(down - one, right - other) for one, other in places], 0)
    return _edge((wide - far) / 0.05)


@cache
def dice(seed: int, rows: int = 3000, noise: float = 0.25) -> Split:
    """How many pips does the die show? Light ones on a dark side or dark ones on a light one."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 6, rows)
    down, right = _places(random, rows, 0.5, 0.08)
    pips = np.choose(label[:, None, None], [_spots(down, right, one, 0.2) for one in PIPS])
    light = random.choice([-1.0, 1.0], (rows, 1, 1)) * _one(random, rows, 0.7, 1.2)
    side = _edge((0.95 - np.maximum(abs(down), abs(right))) / 0.05)
    x = light * (pips - 0.5) * side + noise * random.normal(size=pips.shape)
    return split(_standard(x[:, None]), torch.tensor(label), seed=seed)


def _sewn(random: np.random.Generator, rows: int, turn: float) -> tuple[np.ndarray, np.ndarray]:
    """Two holes, three, four, a slit, or a ring: from 0 to 1, and which it is."""
    label = random.integers(0, 5, rows)
    down, right = _places(random, rows, turn, 0.06)
    three = [(0.32 * np.cos(one), 0.32 * np.sin(one)) for one in (0.0, 2.1, 4.2)]
    far = np.hypot(down, right)
    holes = [
        _spots(down, right, [(0.0, -0.3), (0.0, 0.3)], 0.16), _spots(down, right, three, 0.15),
        _spots(down, right, [(0.6 * one, 0.6 * other) for one, other in CORNERS], 0.15),
        _edge((0.12 - np.maximum(abs(down), abs(right) - 0.35)) / 0.05),
        _edge((0.1 - abs(far - 0.45)) / 0.05),
    ]  # fmt: skip
    disc = _edge((_one(random, rows, 0.8, 0.95) - far) / 0.05)
    return disc * (1 - 0.9 * np.choose(label[:, None, None], holes)), label


@cache
def buttons(seed: int, rows: int = 2800, noise: float = 0.15) -> Split:
    """How is the button sewn on? In any colour, on cloth of any colour: N x 3 x 14 x 14."""
    random = np.random.default_rng(seed)
    ink, label = _sewn(random, rows, np.pi)
    paint, cloth = random.uniform(0.4, 1.0, (rows, 3, 1, 1)), random.uniform(0.0, 0.5, (rows, 3, 1, 1))
    x = cloth + (paint - cloth) * ink[:, None]
    return split(_standard(x + noise * random.normal(size=x.shape)), torch.tensor(label), seed=seed)


@cache
def buttons_alone(seed: int, rows: int = 2400) -> Split:
    """Buttons hardly turned, told by themselves: N x 1 x 14 x 14, from 0 to 1."""
    x = floats(_sewn(np.random.default_rng(seed), rows, 0.3)[0])[:, None]
    return split(x, x, seed=seed)


def _dials(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A needle within a rim, and where it points, in radians from the top."""
    angle = random.uniform(-2.3, 2.3, rows)
    down, right = _places(random, rows, 0.08, 0.08)
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    along, across = s * right - c * down, c * right + s * down
    needle = _edge(np.minimum(0.09 - abs(across), np.minimum(along + 0.15, 0.75 - along)) / 0.06)
    rim = _edge((0.07 - abs(np.hypot(down, right) - 0.92)) / 0.06)
    return np.maximum(needle, 0.6 * rim) * _one(random, rows, 0.7, 1.0), angle


@cache
def dials(seed: int, rows: int = 2800, noise: float = 0.15) -> Split:
    """What does the dial read (standardised)?"""
    random = np.random.default_rng(seed)
    ink, angle = _dials(random, rows)
    x = ink + noise * random.normal(size=ink.shape)
    return split(_standard(x[:, None]), floats(scaled(angle[:, None])), seed=seed)


@cache
def dials_alone(seed: int, rows: int = 2400) -> Split:
    """Dials told by themselves, standardised."""
    x = _standard(_dials(np.random.default_rng(seed), rows)[0][:, None])
    return split(x, x, seed=seed)


def _ridges(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Ridges from -1 to 1 of an arch, a loop to the left, one to the right, or a whorl."""
    label = random.integers(0, 4, rows)
    down, right = _places(random, rows, 0.2, 0.12)
    arch = down + 0.5 * np.exp(-((right / 0.45) ** 2))
    left, other = (np.hypot(0.8 * (down + sign * right), 0.35 * (down - sign * right)) for sign in (1, -1))
    height = np.choose(label[:, None, None], [arch, left, other, np.hypot(down, 1.1 * right)])
    return np.cos(_one(random, rows, 8, 11) * height + _one(random, rows, 0, 6.28)), label


@cache
def prints(seed: int, rows: int = 2800, noise: float = 0.5) -> Split:
    """Of which kind is the print of a finger?"""
    random = np.random.default_rng(seed)
    x, label = _ridges(random, rows)
    x = x * _one(random, rows, 0.6, 1.2) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), torch.tensor(label), seed=seed)


@cache
def prints_cleaned(seed: int, rows: int = 2400, noise: float = 0.6) -> Split:
    """Smudged prints, and the same without the smudges."""
    random = np.random.default_rng(seed)
    whole = floats(1.414 * _ridges(random, rows)[0])[:, None]
    return split(whole + floats(noise * random.normal(size=whole.shape)), whole, seed=seed)
