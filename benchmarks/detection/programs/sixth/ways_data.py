"""What is learnt in other ways in the sixth set: forged rows, spectra, grains, heads and tails of tables."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.fifth.sequences_data import floats

__all__ = ["bends", "buyers", "echoes", "grains", "kinds_of_draws", "stays", "strains"]


@cache
def kinds_of_draws(rows: int = 2400) -> torch.Tensor:
    """Which of four kinds (as 0 and 1), and six numbers that hang together in each kind's own way."""
    random = np.random.default_rng(641)
    kind = random.integers(0, 4, rows)
    mixed, middle = random.normal(size=(4, 6, 3)) / 1.7, random.normal(size=(4, 6))
    x = np.einsum("nij,nj->ni", mixed[kind], random.normal(size=(rows, 3))) + middle[kind]
    x += 0.1 * random.normal(size=x.shape)
    return floats(np.concatenate([np.eye(4)[kind], (x - x.mean(0)) / x.std(0)], 1))


@cache
def bends(rows: int = 2400, points: int = 5) -> torch.Tensor:
    """Five points along an arc, more or less bent, turned any way."""
    random = np.random.default_rng(642)
    bend, turn = random.uniform(0.4, 1.6, (rows, 1)), random.uniform(0, 2 * np.pi, (rows, 1))
    angle = np.linspace(-1, 1, points) * bend + turn
    x = np.stack([np.cos(angle), np.sin(angle)], 2).reshape(rows, -1) * 1.2
    return floats(x + 0.05 * random.normal(size=x.shape))


@cache
def echoes(rows: int = 1600, length: int = 64) -> Split:
    """What lies below (five sorts of layers), by the echo of a shot: (N, 1, L)."""
    random = np.random.default_rng(643)
    depth, strong = np.sort(random.uniform(6, 50, (5, 3)), 1), random.choice([-1, 1], (5, 3))
    x, y, t = np.zeros((rows, 1, length)), random.integers(0, 5, rows), np.arange(length)
    for echo, kind in zip(x[:, 0], y, strict=True):
        after = t - (depth[kind] + 1.5 * random.normal(size=3))[:, None]
        heard = (1 - (after / 2) ** 2) * np.exp(-((after / 2) ** 2) / 2)
        echo[:] = (strong[kind] * random.uniform(0.6, 1.2, 3)) @ heard + 0.3 * random.normal(size=length)
    return split(floats(x / x.std()), torch.tensor(y), seed=643)


@cache
def strains(rows: int = 1800, gauges: int = 20) -> Split:
    """Two loads on a beam by its twenty gauges; the beam gives way where much is asked of it."""
    random = np.random.default_rng(644)
    load, place = random.uniform(0.2, 1.5, (rows, 2)), random.uniform(0.15, 0.85, (rows, 2))
    along = np.linspace(0, 1, gauges)
    place3 = place[..., None]
    bent = (load[..., None] * np.minimum(along * (1 - place3), place3 * (1 - along))).sum(1)
    x = np.tanh(3 * bent) + 0.03 * random.normal(size=bent.shape)
    y = np.stack([load.sum(1), (load * place).sum(1)], 1)
    return split(floats((x - x.mean(0)) / x.std(0)), floats((y - y.mean(0)) / y.std(0)), seed=644)


@cache
def grains(rows: int = 2000, side: int = 12) -> Split:
    """Pictures of four rocks: fine or coarse grain, layered or not. One channel."""
    random = np.random.default_rng(645)
    y = random.integers(0, 4, rows)
    x = random.normal(size=(rows, side, side))
    wave = np.fft.fftfreq(side)
    for picture, kind in zip(x, y, strict=True):
        far = np.hypot(wave[:, None] * (3.0 if kind >= 2 else 1.0), wave[None, :])
        keep = np.exp(-((far / (0.1 if kind % 2 else 0.28)) ** 2))
        found = np.fft.ifft2(np.fft.fft2(picture) * keep).real
        picture[:] = found / found.std() + 0.35 * random.normal(size=found.shape)
    return split(floats(x[:, None] / x.std()), torch.tensor(y), seed=645)


@cache
def stays(rows: int = 1600, length: int = 18) -> Split:
    """Five readings by the hour of a patient; which of three courses it is, and how many days are left."""
    random = np.random.default_rng(646)
    kind, grade = random.integers(0, 3, rows), random.normal(size=(rows, 1, 1))
    t = np.linspace(-1, 1, length)[:, None]
    way, bend = random.normal(size=(3, 5)), random.normal(size=(3, 5))
    x = grade * random.normal(size=5) + way[kind][:, None] * t * (1 + 0.5 * grade)
    x += bend[kind][:, None] * t**2 + 0.7 * random.normal(size=x.shape)
    days = grade[:, 0, 0] * 0.8 + 0.6 * kind + 0.3 * random.normal(size=rows)
    y = np.stack([kind, (days - days.mean()) / days.std()], 1)
    return split(floats((x - x.mean((0, 1))) / x.std((0, 1))), floats(y), seed=646)


@cache
def buyers(rows: int = 3000, columns: int = 12) -> Split:
    """Twelve columns about a visitor; whether something is looked at, and whether it is bought then."""
    random = np.random.default_rng(647)
    x = random.normal(size=(rows, columns))
    hidden = np.tanh(x @ random.normal(size=(columns, 4)) / 2)
    keen = hidden @ random.normal(size=4) * 1.8 + 0.3
    ready = hidden @ random.normal(size=4) * 1.5 + keen / 2 - 0.4
    looked = random.random(rows) < 1 / (1 + np.exp(-2 * keen))
    took = random.random(rows) < 1 / (1 + np.exp(-2 * ready))
    return split(floats(x), floats(np.stack([looked, looked & took], 1)), seed=647)
