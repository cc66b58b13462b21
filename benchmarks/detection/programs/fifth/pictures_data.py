"""Pictures of the fifth set, all drawn here: letters, garments, cells, land from above, surfaces."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["SIDE", "cells", "cells_cleaned", "garments", "hands", "inked", "land", "letters", "more_letters",
           "surfaces", "worn_again"]  # fmt: skip

SIDE = 14
STROKES = {
    "A": "0.1,1 0.5,0 0.9,1|0.28,0.6 0.72,0.6", "E": "0.85,0 0.15,0 0.15,1 0.85,1|0.15,0.5 0.7,0.5",
    "F": "0.85,0 0.15,0 0.15,1|0.15,0.5 0.7,0.5", "H": "0.15,0 0.15,1|0.85,0 0.85,1|0.15,0.5 0.85,0.5",
    "K": "0.15,0 0.15,1|0.85,0 0.15,0.55 0.85,1", "L": "0.2,0 0.2,1 0.85,1",
    "M": "0.1,1 0.1,0 0.5,0.6 0.9,0 0.9,1", "N": "0.15,1 0.15,0 0.85,1 0.85,0",
    "T": "0.1,0 0.9,0|0.5,0 0.5,1", "V": "0.1,0 0.5,1 0.9,0", "X": "0.1,0 0.9,1|0.9,0 0.1,1",
    "Y": "0.1,0 0.5,0.5 0.9,0|0.5,0.5 0.5,1", "Z": "0.1,0 0.9,0 0.1,1 0.9,1",
    "P": "0.2,1 0.2,0 0.8,0.05 0.85,0.3 0.75,0.5 0.2,0.55",
    "S": "0.85,0.1 0.3,0 0.2,0.3 0.75,0.6 0.75,0.95 0.15,0.95",
    "C": "0.85,0.1 0.4,0 0.12,0.5 0.4,1 0.85,0.9",
}  # fmt: skip
"""Letters as lines from point to point: x (to the right) and y (down) as shares of their box."""


def _segments(letter: str) -> np.ndarray:
    """Ends of all strokes, n x 2 x 2."""
    found = []
    for line in STROKES[letter].split("|"):
        points = np.array([[float(one) for one in pair.split(",")] for pair in line.split()])
        found.append(np.stack([points[:-1], points[1:]], 1))
    return np.concatenate(found)


def _written(known: str, rows: int, seed: int, side: int = SIDE) -> tuple[np.ndarray, np.ndarray]:
    """Letters by all sorts of hands, turned, leaning, thick or thin: ink from 0 to 1, and which they are."""
    random = np.random.default_rng(seed)
    label, ink = random.integers(0, len(known), rows), np.zeros((rows, side, side))
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="xy"), -1).astype(float)
    for place, picture in enumerate(ink):
        ends = _segments(known[label[place]]) - 0.5
        ends = ends + 0.05 * random.normal(size=ends.shape)
        turn = random.normal(0, 0.15)
        lean = np.array([[np.cos(turn), -np.sin(turn) + random.normal(0, 0.2)], [np.sin(turn), np.cos(turn)]])
        ends = (
            ends @ lean.T * random.uniform(0.55, 0.78, 2) * side + side / 2 - 0.5 + random.normal(0, 0.6, 2)
        )
        first, along = ends[:, 0], ends[:, 1] - ends[:, 0]
        from_first = grid[:, :, None] - first
        share = ((from_first * along).sum(-1) / ((along**2).sum(-1) + 1e-6)).clip(0, 1)
        far = np.sqrt(((from_first - share[..., None] * along) ** 2).sum(-1)).min(-1)
        picture[:] = _edge((random.uniform(0.7, 1.2) - far) / 0.35)
    return ink, label


def _edge(far: np.ndarray) -> np.ndarray:
    """From 0 outside to 1 inside."""
    return 1 / (1 + np.exp(-np.clip(2 * far, -30, 30)))


def _channel(x: np.ndarray) -> torch.Tensor:
    """Standardised over all pixels, one channel."""
    return floats((x - x.mean()) / x.std())[:, None]


@cache
def letters(rows: int = 2200) -> Split:
    """Which of ten letters? Some of the paper is dirty."""
    ink, label = _written("AEFHKLMNTV", rows, 321)
    ink += 0.18 * np.random.default_rng(322).normal(size=ink.shape)
    return split(_channel(ink), torch.tensor(label), seed=321)


@cache
def more_letters(rows: int = 900) -> Split:
    """Six letters that are not among those ten, and fewer of them."""
    ink, label = _written("XYZPSC", rows, 323)
    ink += 0.18 * np.random.default_rng(324).normal(size=ink.shape)
    return split(_channel(ink), torch.tensor(label), held=0.5, seed=323)


@cache
def inked(rows: int = 1800) -> Split:
    """Sixteen letters without dirt as shares of ink, 196 numbers: told by themselves."""
    ink, _ = _written("".join(STROKES), rows, 325)
    x = floats(ink).flatten(1)
    return split(x, x, seed=325)


def _dressed(rows: int, seed: int, side: int = SIDE) -> tuple[np.ndarray, np.ndarray]:
    """Silhouettes of a shirt, trousers, a dress, a bag, a boot and a hat with some pattern, from 0 to 1."""
    random = np.random.default_rng(seed)
    label, x = random.integers(0, 6, rows), np.zeros((rows, side, side))
    down, across = np.meshgrid(np.linspace(0, 1, side), np.linspace(-1, 1, side), indexing="ij")
    for picture, kind in zip(x, label, strict=True):
        top, low = random.uniform(0.02, 0.18), random.uniform(0.82, 0.98)
        wide, lean = random.uniform(0.4, 0.65), random.normal(0, 0.08)
        c = across - lean
        t = (down - top) / (low - top)
        inside = (t > 0) & (t < 1)
        shape = (
            inside & (abs(c) < np.where(t < 0.35, wide + 0.35, wide)),
            inside & (abs(c) < wide) & ((t < 0.3) | (abs(c) > 0.3 * wide)),
            inside & (abs(c) < 0.3 + (wide - 0.1) * t),
            (inside & (t > 0.4) & (abs(c) < wide + 0.2))
            | (inside & (t <= 0.4) & (abs(np.hypot(c, 1.6 * (t - 0.4)) - 0.45) < 0.13)),
            inside & (((c > 0) & (c < wide)) | ((t > 0.6) & (abs(c) < wide))),
            ((t > 0.25) & (t < 0.7) & (abs(c) < wide)) | ((t >= 0.7) & (t < 0.95) & (abs(c) < wide + 0.35)),
        )[kind]
        cloth = random.uniform(0.5, 1.0) + 0.15 * np.sin(random.uniform(3, 9) * (random.normal() * t + c))
        picture[:] = shape * cloth
    return x.clip(0, 1), label


@cache
def garments(rows: int = 2200) -> Split:
    """Which of six garments, in noise?"""
    x, label = _dressed(rows, 326)
    x += 0.3 * np.random.default_rng(327).normal(size=x.shape)
    return split(_channel(x), torch.tensor(label), seed=326)


@cache
def worn_again(rows: int = 1800) -> Split:
    """Garments without noise: told by themselves."""
    x = floats(_dressed(rows, 328)[0])[:, None]
    return split(x, x, seed=328)


def _smears(rows: int, seed: int, side: int = SIDE) -> tuple[np.ndarray, np.ndarray]:
    """A round cell on a bright ground, with one to three dark dots in half of them."""
    random = np.random.default_rng(seed)
    ill, x = random.random(rows) < 0.5, np.zeros((rows, side, side))
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    for picture, has in zip(x, ill, strict=True):
        r, c = random.normal(side / 2 - 0.5, 0.8, 2)
        big, flat = random.uniform(4.2, 6.0), random.uniform(0.8, 1.25)
        far = np.sqrt((row - r) ** 2 + ((column - c) * flat) ** 2)
        picture[:] = 1 - random.uniform(0.3, 0.5) * _edge(big - far) - 0.1 * _edge(0.5 * big - far)
        for _ in range(random.integers(1, 4) if has else 0):
            turn, out = random.uniform(0, 6.3), random.uniform(0, 0.7) * big
            near = (row - r - out * np.sin(turn)) ** 2 + (column - c - out * np.cos(turn)) ** 2
            picture[:] -= random.uniform(0.3, 0.5) * np.exp(-near / random.uniform(0.5, 1.2))
    return x, ill


@cache
def cells(rows: int = 2200) -> Split:
    """Is a cell infected?"""
    x, ill = _smears(rows, 329)
    x += 0.07 * np.random.default_rng(330).normal(size=x.shape)
    return split(_channel(x), floats(ill)[:, None], seed=329)


@cache
def cells_cleaned(rows: int = 1800) -> Split:
    """Cells with much noise, and without."""
    x = _channel(_smears(rows, 331)[0])
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(331))
    return split(x + 0.7 * noise, x, seed=331)


LAND = np.array([[0.2, 0.35, 0.6], [0.15, 0.4, 0.2], [0.7, 0.65, 0.35], [0.5, 0.5, 0.52], [0.45, 0.55, 0.3]])


@cache
def land(rows: int = 2200, side: int = 12) -> Split:
    """What is it from above: water, wood, fields, town or meadow with a road? Light and colour differ."""
    random = np.random.default_rng(332)
    label = random.integers(0, 5, rows)
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    x = np.zeros((rows, 3, side, side))
    for picture, kind in zip(x, label, strict=True):
        turn, grain = random.uniform(0, np.pi), random.normal(size=(side, side))
        along = np.cos(turn) * row + np.sin(turn) * column
        smooth = (grain + np.roll(grain, 1, 0) + np.roll(grain, 1, 1) + np.roll(grain, (1, 1), (0, 1))) / 2
        shade = (
            0.05 * smooth,
            0.25 * smooth,
            0.25 * np.sign(np.sin(random.uniform(0.7, 1.1) * along + random.uniform(0, 6))) + 0.08 * grain,
            0.45 * (np.kron(random.random((4, 4)), np.ones((3, 3))) - 0.5) + 0.08 * grain,
            0.12 * smooth + 0.5 * (abs(along - along.mean() - random.normal(0, 2)) < 1.1),
        )[kind]
        colour = LAND[kind] + random.normal(0, 0.13, 3)
        picture[:] = random.uniform(0.7, 1.3) * (colour[:, None, None] + shade) + 0.06 * random.normal(
            size=(3, side, side)
        )
    x = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    return split(floats(x), torch.tensor(label), seed=332)


@cache
def surfaces(rows: int = 2400, side: int = SIDE) -> Split:
    """What is wrong with a brushed surface: nothing, a scratch, a dent or a stain?"""
    random = np.random.default_rng(333)
    label = random.integers(0, 4, rows)
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    x = 0.5 * random.normal(size=(rows, side, 1)) + 0.35 * random.normal(size=(rows, side, side))
    for picture, kind in zip(x, label, strict=True):
        r, c = random.uniform(3, side - 4, 2)
        far = np.hypot(row - r, column - c)
        turn = random.uniform(0.5, 2.6)
        beside = np.cos(turn) * (row - r) - np.sin(turn) * (column - c)
        picture[:] += (
            random.uniform(0.8, 1.3)
            * (
                np.zeros_like(far),
                1.5 * (abs(beside) < 0.6) * (far < random.uniform(3, 6)),
                1.3 * np.exp(-(far**2) / 5) * np.sin(0.9 * (row - r)) * 1.6,
                -1.1 * (far < random.uniform(2.0, 3.2)),
            )[kind]
        )
    return split(_channel(x), torch.tensor(label), seed=333)


@cache
def hands(rows: int = 2200, side: int = SIDE) -> Split:
    """Where does a clock's one hand point? Sine and cosine of its angle."""
    random = np.random.default_rng(334)
    angle, (r, c) = random.uniform(0, 2 * np.pi, rows), random.normal(side / 2 - 0.5, 0.8, (2, rows))
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    down, right = row - r[:, None, None], column - c[:, None, None]
    s, k = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    along, beside = s * down + k * right, k * down - s * right
    far = np.hypot(down, right)
    x = _edge(0.9 - abs(beside)) * (along > 0) * (along < random.uniform(3.5, 5.5, (rows, 1, 1)))
    x = x + 0.6 * _edge(0.6 - abs(far - 6)) + 0.2 * random.normal(size=x.shape)
    return split(_channel(x), floats(np.stack([np.sin(angle), np.cos(angle)], 1)), seed=334)
