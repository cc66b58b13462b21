"""Songs of whales and beans on a belt: what Keras is given in the twelfth set beside pictures and texts."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["beans", "whales"]


@cache
def whales(seed: int, rows: int = 3200, length: int = 56, noise: float = 0.5) -> Split:
    """Who sings? Rising, falling, trembling or pulsed calls, at two hydrophones: (N, L, 2)."""
    random = np.random.default_rng(seed)
    kind, time = random.integers(0, 4, rows), np.linspace(0, 1, length)
    pitch, phase = random.uniform(6, 10, (rows, 1)), random.uniform(0, 6.28, (rows, 1))
    turns = [pitch * (time + 0.8 * time**2), pitch * (2.6 * time - 0.8 * time**2),
             1.8 * pitch * time + 0.35 * np.sin(25 * time), 1.8 * pitch * time]  # fmt: skip
    song = np.sin(2 * np.pi * np.choose(kind[:, None], turns) + phase)
    pulsed = (kind == 3)[:, None] * (np.sin(2 * np.pi * 5 * time + phase) < 0)
    song = song * (1 - 0.9 * pulsed) * random.uniform(0.8, 1.4, (rows, 1))
    x = np.stack([song, 0.7 * np.roll(song, 2, 1)], 2) + noise * random.normal(size=(rows, length, 2))
    return split(floats((x - x.mean((0, 1))) / x.std((0, 1))), torch.tensor(kind), seed=seed)


@cache
def beans(seed: int, rows: int = 3600) -> Split:
    """Is a bean to be blown off the belt (yes or no, N x 1)? By its size, shape, shade and weight."""
    random = np.random.default_rng(seed)
    long, wide = random.normal(12, 1.5, rows), random.normal(8, 1.0, rows)
    shade, spots, damp = random.normal(size=rows), random.poisson(1.5, rows), random.normal(size=rows)
    weight = 0.01 * long * wide**2 * np.exp(0.1 * random.normal(size=rows)) * (1 + 0.1 * damp)
    round_, dense = wide / long, weight / (0.01 * long * wide**2)
    bad = 6 * abs(round_ - 0.67) / 0.13 * 0.3 + 0.6 * spots + shade**2 - 8 * (dense - 1) - 0.5 * damp - 3.2
    yes = random.random(rows) < 1 / (1 + np.exp(-2.5 * bad))
    x = np.column_stack([long, wide, weight, shade, np.sqrt(spots), damp, random.normal(size=(rows, 2))])
    return split(floats(scaled(x)), floats(yes)[:, None], seed=seed)
