"""Pictures of the sixth set, all drawn here: signs, leaves, galaxies, cracks, faces, balls in the light."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.fifth.pictures_data import _channel, _edge
from benchmarks.detection.programs.fifth.tables_data import _floats

__all__ = ["by_themselves", "cleaned", "cracks", "faces", "galaxies", "leaves", "light", "signs"]

SIDE = 14


def _places(
    random: np.random.Generator, rows: int, turn: float, shift: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """How far down and right each pixel is of a thing near the middle, turned: from -1 to 1, N x 14 x 14."""
    line = np.linspace(-1, 1, SIDE)
    down, right = np.meshgrid(line, line, indexing="ij")
    down, right = (one - shift * random.normal(size=(rows, 1, 1)) for one in (down, right))
    angle = random.uniform(-turn, turn, (rows, 1, 1))
    return np.cos(angle) * down - np.sin(angle) * right, np.sin(angle) * down + np.cos(angle) * right


def _one(random: np.random.Generator, rows: int, low: float, high: float) -> np.ndarray:
    return random.uniform(low, high, (rows, 1, 1))


COLOURS = np.array([[0.8, 0.15, 0.15], [0.15, 0.3, 0.8], [0.85, 0.75, 0.15], [0.2, 0.65, 0.3]])


@cache
def signs(seed: int, corners: tuple[int, ...], colours: tuple[int, ...], rows: int = 2200) -> Split:
    """Which sign is it? Its corners and its colour tell, before any ground, in any light: N x 3 x 14 x 14."""
    random = np.random.default_rng(seed)
    label = random.integers(0, len(corners) * len(colours), rows)
    n = np.array(corners)[label % len(corners)][:, None, None]
    down, right = _places(random, rows, 0.15)
    angle, far = np.arctan2(right, -down), np.hypot(down, right)
    rim = (
        _one(random, rows, 0.6, 0.85)
        * np.cos(np.pi / n)
        / np.cos((angle + np.pi / n) % (2 * np.pi / n) - np.pi / n)
    )
    paint = COLOURS[np.array(colours)[label // len(corners)]] + 0.07 * random.normal(size=(rows, 3))
    inside = _edge((rim - far) / 0.08)[:, None]
    x = inside * paint[:, :, None, None] + (1 - inside) * random.uniform(0.2, 0.8, (rows, 3, 1, 1))
    x = x * random.uniform(0.7, 1.3, (rows, 1, 1, 1)) + 0.08 * random.normal(size=x.shape)
    x = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    return split(_floats(x), torch.tensor(label), seed=seed)


@cache
def _grown(seed: int, lobes: tuple[int, ...], rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    label = random.integers(0, len(lobes), rows)
    down, right = _places(random, rows, 0.5)
    angle, far = np.arctan2(right, -down), np.hypot(down / _one(random, rows, 1.0, 1.2), right)
    wave = np.cos(np.array(lobes)[label][:, None, None] * angle)
    rim = _one(random, rows, 0.5, 0.65) * (1 + _one(random, rows, 0.25, 0.45) * wave)
    return _edge((rim - far) / 0.08) * _one(random, rows, 0.6, 1.0), label


@cache
def leaves(seed: int, lobes: tuple[int, ...] = (0, 2, 3, 4, 5), rows: int = 2200) -> Split:
    """Which leaf is it? The lobes of its outline tell."""
    x, label = _grown(seed, lobes, rows)
    x = x + 0.15 * np.random.default_rng(seed + 1).normal(size=x.shape)
    return split(_channel(x), torch.tensor(label), seed=seed)


def _seen(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    label = random.integers(0, 4, rows)
    kind = label[:, None, None]
    down, right = _places(random, rows, np.pi)
    flat = np.where(kind == 0, _one(random, rows, 0.6, 0.95), np.where(kind == 1, 0.2, 0.8))
    far, angle = np.hypot(down / flat, right), np.arctan2(down / flat, right)
    arms = np.cos(2 * angle - _one(random, rows, 3.0, 5.0) * np.log(far + 0.15))
    disc = np.exp(-far / _one(random, rows, 0.3, 0.45))
    bar = np.exp(-((down / 0.1) ** 2)) * (abs(right) < 0.45)
    x = disc * np.where(kind >= 2, 1 + 0.9 * arms * np.tanh(3 * far), 1.0) + 0.5 * (kind == 3) * bar
    return x / x.max((1, 2), keepdims=True), label


@cache
def galaxies(seed: int = 641, rows: int = 2200) -> Split:
    """Round, seen from the side, with arms, or with arms and a bar?"""
    x, label = _seen(seed, rows)
    x = x + 0.06 * np.random.default_rng(seed + 1).normal(size=x.shape)
    return split(_channel(x), torch.tensor(label), seed=seed)


@cache
def cracks(seed: int = 651, rows: int = 2200, share: float = 0.5) -> Split:
    """Is there a crack in the concrete? Grains, shadows, and a thin dark line in some: labels N x 1."""
    random = np.random.default_rng(seed)
    broken = random.random((rows, 1, 1)) < share
    down, right = _places(random, rows, np.pi, 0.3)
    line = _one(random, rows, 0.1, 0.3) * np.sin(_one(random, rows, 2, 6) * right + _one(random, rows, 0, 6))
    x = 0.25 * random.normal(size=(rows, SIDE, SIDE)) + _one(random, rows, -0.3, 0.3) * down
    x -= broken * _one(random, rows, 0.6, 1.0) * np.exp(-(((down - line) / 0.11) ** 2))
    return split(_channel(x), _floats(broken[:, 0]), seed=seed)


def _drawn(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    label = random.integers(0, 4, rows)
    kind = label[:, None, None]
    down, right = _places(random, rows, 0.15)
    head = _edge((0.85 - np.hypot(down, right / _one(random, rows, 0.8, 1.0))) / 0.08)
    apart, high = _one(random, rows, 0.28, 0.4), _one(random, rows, 0.2, 0.35)
    eyes = sum(np.exp(-((down + high) ** 2 + (right - way * apart) ** 2) / 0.015) for way in (-1, 1))
    bend = np.choose(kind, [-1.0, 0.0, 1.0, 0.0]) * _one(random, rows, 1.4, 2.4)
    open_ = np.where(kind == 3, 0.2, 0.09)
    mouth = np.exp(-(((down - 0.4 - bend * (right**2 - 0.07)) / open_) ** 2)) * _edge(
        (0.4 - abs(right)) / 0.06
    )
    return (head * 0.8 - 0.7 * eyes - 0.7 * mouth).clip(0, 1), label


@cache
def faces(seed: int = 661, rows: int = 2200) -> Split:
    """Does it smile, not care, frown or wonder?"""
    x, label = _drawn(seed, rows)
    x = x + 0.1 * np.random.default_rng(seed + 1).normal(size=x.shape)
    return split(_channel(x), torch.tensor(label), seed=seed)


@cache
def light(seed: int = 671, rows: int = 2200) -> Split:
    """From where does the light come? Two numbers of its direction, by the shade of a ball."""
    random = np.random.default_rng(seed)
    down, right = _places(random, rows, 0.0)
    big = _one(random, rows, 0.65, 0.9)
    down, right = down / big, right / big
    up = np.sqrt(np.maximum(0, 1 - down**2 - right**2))
    way, lean = random.uniform(0, 2 * np.pi, rows), np.sqrt(random.uniform(0.1, 0.9, rows))
    to = np.stack([lean * np.sin(way), lean * np.cos(way), np.sqrt(1 - lean**2)], 1)
    d, r, u = (to[:, one, None, None] for one in range(3))
    x = np.where(
        up > 0, _one(random, rows, 0.5, 1.0) * np.maximum(0, down * d + right * r + up * u) + 0.1, 0.05
    )
    return split(_channel(x + 0.1 * random.normal(size=x.shape)), _floats(to[:, :2]), seed=seed)


@cache
def by_themselves(kind: str, seed: int, rows: int = 1800) -> Split:
    """Leaves, faces or galaxies without noise, told by themselves: roots of their light, N x 1 x 14 x 14."""
    x, _ = {"leaves": lambda: _grown(seed, (2, 3, 5), rows), "faces": lambda: _drawn(seed, rows),
            "galaxies": lambda: _seen(seed, rows)}[kind]()  # fmt: skip
    x = np.sqrt(x.clip(0, 1))
    return split(_floats(x)[:, None], _floats(x)[:, None], seed=seed)


@cache
def cleaned(seed: int = 681) -> Split:
    """Faces with much noise, and without."""
    x = _channel(_drawn(seed, 1800)[0])
    return split(x + 0.8 * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)), x, seed=seed)
