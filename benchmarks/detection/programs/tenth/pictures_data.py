"""Pictures of the tenth set, all drawn here: fruits, clouds, bottles, roofs and lanes."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split
from benchmarks.detection.programs.fifth.pictures_data import _edge
from benchmarks.detection.programs.seventh.pictures_data import _standard
from benchmarks.detection.programs.sixth.pictures_data import SIDE, _one, _places

__all__ = ["bottles", "bottles_alone", "clouds", "clouds_cleaned", "fruits", "fruits_alone", "lanes", "roofs",
           "roofs_blurred"]  # fmt: skip

COLOURS = np.array([
    [[0.8, 0.15, 0.15], [0.5, 0.7, 0.2]], [[0.9, 0.8, 0.2], [0.6, 0.75, 0.2]],
    [[0.9, 0.8, 0.25], [0.6, 0.7, 0.25]], [[0.6, 0.7, 0.25], [0.85, 0.7, 0.3]],
    [[0.4, 0.15, 0.5], [0.7, 0.2, 0.25]],
])  # fmt: skip
"""Of an apple, a lemon, a banana, a pear and a plum, two of each."""


def _grown(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Fruits before any cloth, N x 3 x 14 x 14 from 0 to 1, and which they are."""
    label = random.integers(0, 5, rows)
    down, right = _places(random, rows, 0.5, 0.06)
    far, thick = np.hypot(down, right), _one(random, rows, 0.9, 1.1)
    far_from = [
        0.68 * thick - far - 0.25 * np.exp(-((right / 0.2) ** 2 + ((down + 0.65) / 0.3) ** 2)),
        0.5 * thick - np.hypot(1.1 * down, 0.62 * right) + 0.1 * np.exp(-((abs(right) - 0.8) ** 2) / 0.02),
        np.minimum(0.85 * thick - far, np.hypot(down + 0.45, right) - 0.75),
        np.maximum(0.52 * thick - np.hypot(down - 0.25, right), 0.3 * thick - np.hypot(down + 0.4, right)),
        0.45 * thick - np.hypot(0.7 * down, right),
    ]
    inside = _edge(np.choose(label[:, None, None], far_from) / 0.08)[:, None]
    paint = COLOURS[label, random.integers(0, 2, rows)] + 0.05 * random.normal(size=(rows, 3))
    cloth = random.uniform(0.1, 0.9, (rows, 3, 1, 1))
    return cloth + (paint[:, :, None, None] - cloth) * inside, label


@cache
def fruits(seed: int, rows: int = 3400, noise: float = 0.1) -> Split:
    """Which fruit? Its outline and its colour tell, in any light: N x 3 x 14 x 14."""
    random = np.random.default_rng(seed)
    x, label = _grown(random, rows)
    x = x * random.uniform(0.6, 1.2, (rows, 1, 1, 1)) + noise * random.normal(size=x.shape)
    return split(_standard(x), torch.tensor(label), seed=seed)


@cache
def fruits_alone(seed: int, rows: int = 2600) -> Split:
    """Fruits told by themselves, standardised."""
    x = _standard(_grown(np.random.default_rng(seed), rows)[0])
    return split(x, x, seed=seed)


def _sky(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Heaps, a layer, streaks or ripples: noise through a filter of its own, of a spread of one."""
    label = random.integers(0, 4, rows)
    side = np.fft.fftfreq(SIDE)
    turn = random.normal(0, 0.3, (rows, 1, 1)) + np.array([0, 0, 0.8, 0])[label, None, None]
    along = np.cos(turn) * side[:, None] + np.sin(turn) * side
    across = np.cos(turn) * side - np.sin(turn) * side[:, None]
    kinds = [
        np.exp(-(along**2 + across**2) / 0.02), np.exp(-(along**2) / 0.02 - across**2 / 0.002),
        np.exp(-(along**2) / 0.06 - across**2 / 0.004),
        np.exp(-((abs(along) - 0.25) ** 2) / 0.003 - across**2 / 0.01),
    ]  # fmt: skip
    rough = np.fft.fft2(random.normal(size=(rows, SIDE, SIDE)))
    x = np.fft.ifft2(rough * np.choose(label[:, None, None], kinds)).real
    return (x - x.mean((1, 2), keepdims=True)) / x.std((1, 2), keepdims=True), label


@cache
def clouds(seed: int, rows: int = 3600, noise: float = 0.5) -> Split:
    """What clouds are in the sky?"""
    random = np.random.default_rng(seed)
    x, label = _sky(random, rows)
    x = x * _one(random, rows, 0.6, 1.2) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), torch.tensor(label), seed=seed)


@cache
def clouds_cleaned(seed: int, rows: int = 2600, noise: float = 0.8) -> Split:
    """Clouds by a poor camera, and the same without its noise."""
    random = np.random.default_rng(seed)
    whole = floats(_sky(random, rows)[0])[:, None]
    return split(whole + floats(noise * random.normal(size=whole.shape)), whole, seed=seed)


def _filled(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Bottles from 0 to 1, and up to where they are filled."""
    down, right = _places(random, rows, 0.12, 0.06)
    wide, neck = _one(random, rows, 0.35, 0.55), _one(random, rows, 0.12, 0.2)
    shoulder = 1 / (1 + np.exp(-(down + 0.35) / 0.08))
    wall = neck + (wide - neck) * shoulder - abs(right)
    glass = _edge(np.minimum(wall, 0.92 - abs(down)) / 0.07)
    level = _one(random, rows, -0.3, 0.85)
    wine = _edge((down - level) / 0.07)
    return glass * (0.3 + _one(random, rows, 0.45, 0.7) * wine), level[:, 0, 0]


@cache
def bottles(seed: int, rows: int = 3000, noise: float = 0.12) -> Split:
    """How far down does the wine stand (standardised)?"""
    random = np.random.default_rng(seed)
    x, level = _filled(random, rows)
    x = x + _one(random, rows, 0, 0.3) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), floats(scaled(level[:, None])), seed=seed)


@cache
def bottles_alone(seed: int, rows: int = 2600) -> Split:
    """Bottles told by themselves, standardised: N x 1 x 14 x 14."""
    x = _standard(_filled(np.random.default_rng(seed), rows)[0][:, None])
    return split(x, x, seed=seed)


def _roofed(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Houses from above, in any light, and which pixels are of a roof."""
    inside = np.full((rows, SIDE, SIDE), -1.0)
    shade = np.zeros_like(inside)
    for _ in range(3):
        down, right = _places(random, rows, np.pi, 0.5)
        edge = np.minimum(
            _one(random, rows, 0.15, 0.4) - abs(down), _one(random, rows, 0.25, 0.5) - abs(right)
        )
        shade = np.where(edge > 0, 0.5 * np.sign(down), shade)
        inside = np.maximum(inside, edge)
    ground = np.fft.ifft2(
        np.fft.fft2(random.normal(size=inside.shape)) * np.exp(-(np.fft.fftfreq(SIDE)[:, None] ** 2) / 0.02)
    ).real
    return np.where(inside > 0, 0.8 + shade, 0.6 * ground), inside > 0


@cache
def roofs(seed: int, rows: int = 2000, noise: float = 0.3) -> Split:
    """Where are roofs? Shares of 0 or 1 for each pixel."""
    random = np.random.default_rng(seed)
    x, there = _roofed(random, rows)
    x = x * _one(random, rows, 0.7, 1.3) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), floats(there)[:, None], seed=seed)


@cache
def roofs_blurred(seed: int, rows: int = 2600) -> Split:
    """Houses at half the sharpness, N x 1 x 7 x 7, and as they are."""
    x = _standard(_roofed(np.random.default_rng(seed), rows)[0][:, None])
    return split(torch.nn.functional.avg_pool2d(x, 2), x, seed=seed)


@cache
def lanes(seed: int, rows: int = 3000, noise: float = 0.25) -> Split:
    """How far to the right is the middle of the road, and how does it bend (both standardised)?"""
    random = np.random.default_rng(seed)
    near = np.linspace(0, 1, SIDE)[:, None]
    right = np.linspace(-1, 1, SIDE)[None, :]
    shift, bend = _one(random, rows, -0.5, 0.5), _one(random, rows, -0.8, 0.8)
    middle = shift * near + bend * (1 - near) ** 2
    lines = sum(_edge((0.08 - abs(right - middle - side * (0.1 + 0.5 * near))) / 0.06) for side in (-1, 1))
    x = lines * _one(random, rows, 0.6, 1.2) + _one(random, rows, -0.3, 0.3) * near
    x = x + noise * random.normal(size=x.shape)
    return split(
        _standard(x[:, None]), floats(scaled(np.column_stack([shift.ravel(), bend.ravel()]))), seed=seed
    )
