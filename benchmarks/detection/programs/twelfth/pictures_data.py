"""Pictures of the twelfth set, all drawn here: tracks, timbers, ships, glasses, roads and beads."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split
from benchmarks.detection.programs.seventh.pictures_data import _standard

__all__ = ["beads", "glasses", "roads", "ships", "timbers", "timbers_cleaned", "tracks", "tracks_drawn"]

SIDE = 16
WOODS = np.array([[0.72, 0.5, 0.3], [0.85, 0.7, 0.5], [0.5, 0.32, 0.2]])
PAINTS = np.array([[0.8, 0.2, 0.2], [0.2, 0.35, 0.8], [0.85, 0.75, 0.2]])


def _drawn(random: np.random.Generator, rows: int, *bounds: tuple[float, float]) -> list[np.ndarray]:
    """A number for each picture within each of the bounds: N x 1 x 1."""
    return [random.uniform(low, high, (rows, 1, 1)) for low, high in bounds]


def _grid(
    random: np.random.Generator, rows: int, turn: float, shift: float, side: int = SIDE
) -> tuple[np.ndarray, np.ndarray]:
    """Down and right of a middle that is moved by chance, on axes that are turned by chance."""
    line = np.linspace(-1, 1, side)
    move_down, move_right, angle = _drawn(random, rows, (-shift, shift), (-shift, shift), (-turn, turn))
    down, right = line[:, None] - move_down, line[None, :] - move_right
    return np.cos(angle) * down + np.sin(angle) * right, np.cos(angle) * right - np.sin(angle) * down


def _blob(down: np.ndarray, right: np.ndarray, at: tuple, long: object, wide: object) -> np.ndarray:
    """A soft spot, long along the first axis and wide along the second."""
    return np.exp(-(((down - at[0]) / long) ** 2) - ((right - at[1]) / wide) ** 2)


def _walked(random: np.random.Generator, rows: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Feet in the snow, 0 to 1: a hoof, a bird, a cat, a dog with its claws, or a badger with five toes."""
    kind = random.integers(0, 5, rows)
    down, right = _grid(random, rows, 0.35, 0.15, side)
    (big,) = _drawn(random, rows, (0.85, 1.1))
    down, right = down / big, right / big
    hoof = _blob(down, right, (0, -0.27), 0.6, 0.2) + _blob(down, right, (0, 0.27), 0.6, 0.2)
    bird = sum(
        np.exp(-(((right - slope * (down - 0.5)) / 0.12) ** 2)) * (abs(down) < 0.6)
        for slope in (-0.6, 0, 0.6)
    )
    pad = 0.9 * _blob(down, right, (0.35, 0), 0.3, 0.42)
    cat = pad + sum(_blob(down, right, (abs(at) - 0.5, at), 0.2, 0.15) for at in (-0.6, -0.2, 0.2, 0.6))
    dog = cat + sum(_blob(down, right, (abs(at) - 0.88, at), 0.1, 0.08) for at in (-0.6, -0.2, 0.2, 0.6))
    five = pad + sum(
        _blob(down, right, (0.5 * abs(at) - 0.45, at), 0.17, 0.12) for at in (-0.8, -0.4, 0.0, 0.4, 0.8)
    )
    return np.choose(kind[:, None, None], [hoof, bird, cat, dog, five]).clip(0, 1), kind


@cache
def tracks(seed: int, rows: int = 3200, noise: float = 0.2) -> Split:
    """Who went there? N x 1 x 16 x 16."""
    random = np.random.default_rng(seed)
    x, kind = _walked(random, rows, SIDE)
    (deep,) = _drawn(random, rows, (0.6, 1.1))
    x = deep * x + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), torch.tensor(kind), seed=seed)


@cache
def tracks_drawn(seed: int, rows: int = 2800) -> Split:
    """Feet without noise, from 0 to 1, told by themselves: rows of 14 x 14 pixels."""
    x = floats(_walked(np.random.default_rng(seed), rows, 14)[0]).flatten(1)
    return split(x, x, seed=seed)


def _sawn(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Boards, N x 3 x 16 x 16: straight grain, waves, rings of a trunk, or a knot."""
    kind = random.integers(0, 4, rows)
    down, right = _grid(random, rows, 0.4, 0.3)
    often, phase, bend = _drawn(random, rows, (7, 11), (0, 6.28), (0.25, 0.45))
    far = np.hypot(down, right)
    along = [right, right + bend * np.sin(4 * down + phase), np.hypot(down + 1.2, right),
             right + np.sign(right) * 0.5 * np.exp(-((far / 0.4) ** 2))]  # fmt: skip
    grain = np.sin(often * np.choose(kind[:, None, None], along) + phase)
    grain = np.where(kind[:, None, None] == 3, grain - 1.6 * np.exp(-((far / 0.3) ** 2)), grain)
    tone = WOODS[random.integers(0, 3, rows)] * random.uniform(0.8, 1.15, (rows, 1))
    return tone[:, :, None, None] * (1 + 0.2 * grain[:, None]), kind


@cache
def timbers(seed: int, rows: int = 3200, noise: float = 0.12) -> Split:
    """How was the board sawn? N x 3 x 16 x 16."""
    random = np.random.default_rng(seed)
    x, kind = _sawn(random, rows)
    return split(_standard(x + noise * random.normal(size=x.shape)), torch.tensor(kind), seed=seed)


@cache
def timbers_cleaned(seed: int, rows: int = 2200, noise: float = 1.2) -> Split:
    """Boards with the noise of a cheap camera, and without it."""
    random = np.random.default_rng(seed)
    whole = _standard(_sawn(random, rows)[0])
    return split(whole + noise * floats(random.normal(size=whole.shape)), whole, seed=seed)


@cache
def ships(seed: int, rows: int = 3400) -> Split:
    """Does a ship lie in the radar's speckle (yes or no, N x 1)? Swell there is in any picture."""
    random = np.random.default_rng(seed)
    down, right = _grid(random, rows, np.pi, 0.5)
    there = random.random((rows, 1, 1)) < 0.45
    long, wide, bright, often, phase = _drawn(random, rows, (0.3, 0.55), (0.08, 0.14), (1.6, 3.0), (3, 6),
                                              (0, 6.28))  # fmt: skip
    sea = 1 + 0.3 * np.sin(often * right + phase)
    x = sea * random.gamma(4.0, 0.25, sea.shape) + there * bright * _blob(down, right, (0, 0), long, wide)
    return split(_standard(np.log(x + 0.1)[:, None]), floats(there[:, 0]), seed=seed)


@cache
def glasses(seed: int, rows: int = 3200, noise: float = 0.2) -> Split:
    """How high is the glass filled, and how far is it tilted? Standardised, N x 2."""
    random = np.random.default_rng(seed)
    line = np.linspace(-1, 1, SIDE)
    high, tilt, wide, tone = _drawn(random, rows, (-0.7, 0.7), (-0.6, 0.6), (0.5, 0.8), (0.5, 1.1))
    down, right = line[:, None], line[None, :]
    inside = 1 / (1 + np.exp((abs(right - 0.3 * tilt * down) - wide) / 0.06))
    filled = 1 / (1 + np.exp(-(down + high - tilt * right) / 0.07))
    x = inside * (0.3 + tone * filled) + noise * random.normal(size=inside.shape)
    y = scaled(np.concatenate([high[:, 0], tilt[:, 0]], 1))
    return split(_standard(x[:, None]), floats(y), seed=seed)


@cache
def roads(seed: int, rows: int = 1800, noise: float = 0.25) -> Split:
    """Where are roads, seen from above? Shares of 0 or 1 for each pixel; houses are as bright."""
    random = np.random.default_rng(seed)
    down, right = _grid(random, rows, np.pi, 0.3)
    bend, wide, off, slope = _drawn(random, rows, (-0.7, 0.7), (0.1, 0.2), (0.4, 1.2), (-0.3, 0.3))
    road = abs(right - bend * down**2) < wide
    road |= (abs(right + slope * down - off) < 0.8 * wide) & (random.random((rows, 1, 1)) < 0.5)
    house = np.maximum(abs(down - 0.5), abs(right + 0.6)) < 0.22
    x = 0.9 * np.maximum(road, house) + 0.3 * slope * down + noise * random.normal(size=down.shape)
    return split(_standard(x[:, None]), floats(road)[:, None], seed=seed)


@cache
def beads(seed: int, rows: int = 3200, noise: float = 0.06) -> Split:
    """Which bead is it? Round or long, of three paints, on any cloth: N x 3 x 16 x 16."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 6, rows)
    down, right = _grid(random, rows, np.pi, 0.25)
    long = np.where(kind[:, None, None] % 2, 0.7, 0.4)
    bead = (1.6 * _blob(down, right, (0, 0), long, 0.16 / long)).clip(0, 1)[:, None]
    paint = PAINTS[kind // 2] + 0.08 * random.normal(size=(rows, 3))
    cloth = random.uniform(0.3, 0.8, (rows, 1, 1, 1)) + 0.08 * random.normal(size=(rows, 3, 1, 1))
    x = (bead * paint[:, :, None, None] + (1 - bead) * cloth) * random.uniform(0.7, 1.2, (rows, 1, 1, 1))
    return split(_standard(x + noise * random.normal(size=x.shape)), torch.tensor(kind), seed=seed)
