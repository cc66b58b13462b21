"""Pictures of the eleventh set, all drawn here: lesions, spectrograms, lungs, arms, nuclei and fields."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split
from benchmarks.detection.programs.fifth.pictures_data import _edge
from benchmarks.detection.programs.seventh.pictures_data import _standard
from benchmarks.detection.programs.sixth.pictures_data import SIDE, _one, _places

__all__ = ["arms", "by_themselves", "coloured", "fields", "keywords", "keywords_cleaned", "lesions", "lungs",
           "nuclei"]  # fmt: skip

TONES = np.array([[0.45, 0.28, 0.2], [0.25, 0.15, 0.12], [0.6, 0.2, 0.2], [0.35, 0.3, 0.35]])


def _grown(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Marks on skin, N x 3 x 14 x 14 from 0 to 1: round, ragged, two-coloured, ringed, or of small dots."""
    label = random.integers(0, 5, rows)
    kind = label[:, None, None]
    down, right = _places(random, rows, np.pi, 0.12)
    far, angle = np.hypot(down, right * _one(random, rows, 1.0, 1.3)), np.arctan2(down, right)
    rim = _one(random, rows, 0.45, 0.7)
    ragged = np.cos(3 * angle + _one(random, rows, 0, 6)) + np.cos(5 * angle + _one(random, rows, 0, 6))
    rim = rim * (1 + 0.22 * ragged * (kind == 1))
    inside = _edge((rim - far) / 0.09)
    dots = np.cos(9 * down) * np.cos(9 * right) > 0.1
    inside = np.where(kind == 3, inside * _edge((far - 0.5 * rim) / 0.09), inside)
    inside = np.where(kind == 4, inside * dots, inside)
    tone = TONES[random.integers(0, 4, rows)] + 0.05 * random.normal(size=(rows, 3))
    other = np.where(((kind == 2) & (right > 0))[:, None], 0.3, 0.0)
    skin = np.array([0.9, 0.72, 0.6]) * random.uniform(0.75, 1.05, (rows, 1))
    paint = tone[:, :, None, None] + other
    return skin[:, :, None, None] + (paint - skin[:, :, None, None]) * inside[:, None], label


@cache
def lesions(seed: int, rows: int = 3400, noise: float = 0.08) -> Split:
    """What kind of mark is on the skin? In any light: N x 3 x 14 x 14."""
    random = np.random.default_rng(seed)
    x, label = _grown(random, rows)
    return split(_standard(x + noise * random.normal(size=x.shape)), torch.tensor(label), seed=seed)


def _spoken(random: np.random.Generator, rows: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Loudness by pitch and time, N x 20 x 16: two bent lines for each word, at any time."""
    label = random.integers(0, words, rows)
    lines = np.random.default_rng(1100).uniform(-1, 1, (words, 2, 3))[label]
    pitch, time = np.linspace(-1, 1, 20)[:, None], np.linspace(-1, 1, 16)
    late, high = _one(random, rows, -0.3, 0.3), _one(random, rows, -0.2, 0.2)
    then = (time - late) * _one(random, rows, 0.85, 1.15)
    x = 0.0
    for line in range(2):
        start, slope, bend = (lines[:, line, one, None, None] for one in range(3))
        at = 0.6 * start + 0.5 * slope * then + 0.5 * bend * (then**2 - 0.4) + high
        x = x + np.exp(-(((pitch - at) / 0.14) ** 2)) * _one(random, rows, 0.7, 1.1)
    return x * _edge((0.75 - abs(then)) / 0.1), label


@cache
def keywords(seed: int, words: int = 7, rows: int = 3600, noise: float = 0.4) -> Split:
    """Which word is spoken? Spectrograms, N x 1 x 20 x 16."""
    random = np.random.default_rng(seed)
    x, label = _spoken(random, rows, words)
    return split(
        _standard((x + noise * random.normal(size=x.shape))[:, None]), torch.tensor(label), seed=seed
    )


@cache
def keywords_cleaned(seed: int, rows: int = 2600, noise: float = 1.3) -> Split:
    """Spectrograms with street noise, and without."""
    random = np.random.default_rng(seed)
    whole = _standard(_spoken(random, rows, 9)[0][:, None])
    return split(whole + noise * floats(random.normal(size=whole.shape)), whole, seed=seed)


def _breathed(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A chest from the front, with ribs, and in two of five a pale patch in a lung (N x 1)."""
    ill = random.random((rows, 1, 1)) < 0.4
    down, right = _places(random, rows, 0.08, 0.06)
    wide, lungs = _one(random, rows, 0.8, 1.0), 0.0
    for side in (-1, 1):
        away = np.hypot((right - 0.45 * side) / (0.32 * wide), down / (0.8 * wide))
        lungs = lungs + _edge((1 - away) / 0.15)
    ribs = 0.15 * np.cos(_one(random, rows, 9, 11) * (down + 0.25 * abs(right)) + _one(random, rows, 0, 6))
    d, r = _one(random, rows, -0.5, 0.5), 0.45 * np.where(random.random((rows, 1, 1)) < 0.5, -1, 1)
    patch = np.exp(-((down - d) ** 2 + (right - r) ** 2) / _one(random, rows, 0.025, 0.06))
    return 0.8 - 0.55 * lungs + ribs + ill * _one(random, rows, 0.3, 0.5) * patch, ill[:, 0]


@cache
def lungs(seed: int, rows: int = 3200, noise: float = 0.1) -> Split:
    """Is there a patch in a lung (yes or no, N x 1)?"""
    random = np.random.default_rng(seed)
    x, ill = _breathed(random, rows)
    x = x * _one(random, rows, 0.8, 1.2) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), floats(ill), seed=seed)


def _posed(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """An upper and a lower arm from a shoulder near the middle, 0 to 1; and where elbow and hand are."""
    joints = [random.uniform(-0.25, 0.25, (rows, 2))]
    turn = random.uniform(-np.pi, np.pi, rows)
    for long in (0.5, 0.45):
        step = np.stack([np.sin(turn), np.cos(turn)], 1) * long * random.uniform(0.85, 1.1, (rows, 1))
        joints.append(joints[-1] + step)
        turn = turn + random.uniform(0.3, 2.2, rows)
    line, x = np.linspace(-1.2, 1.2, SIDE), 0.0
    here = np.stack(np.meshgrid(line, line, indexing="ij"))[None]
    for thick, (one, two) in zip((0.16, 0.1), pairwise(joints), strict=True):
        begun, along = one[..., None, None], (two - one)[..., None, None]
        share = (((here - begun) * along).sum(1) / (along**2).sum(1)).clip(0, 1)[:, None]
        x = np.maximum(x, _edge((thick - np.hypot(*np.moveaxis(here - begun - share * along, 1, 0))) / 0.06))
    return x, np.concatenate(joints[1:], 1)


@cache
def arms(seed: int, rows: int = 3600, noise: float = 0.12) -> Split:
    """Where are elbow and hand? Down and right of the middle, N x 4, of a spread of about one half."""
    random = np.random.default_rng(seed)
    x, y = _posed(random, rows)
    x = x * _one(random, rows, 0.6, 1.1) + noise * random.normal(size=x.shape)
    return split(_standard(x[:, None]), floats(y), seed=seed)


@cache
def nuclei(seed: int, rows: int = 2000, noise: float = 0.16) -> Split:
    """Where are nuclei of cells? Shares of 0 or 1 for each pixel."""
    random = np.random.default_rng(seed)
    x, there = np.zeros((rows, SIDE, SIDE)), np.zeros((rows, SIDE, SIDE), bool)
    for _ in range(3):
        down, right = _places(random, rows, np.pi, 0.5)
        edge = 1 - np.hypot(down / _one(random, rows, 0.2, 0.4), right / _one(random, rows, 0.2, 0.4))
        x = np.maximum(x, _one(random, rows, 0.5, 1.0) * _edge(edge / 0.3))
        there |= edge > 0
    slope = np.linspace(-1, 1, SIDE) * _one(random, rows, -0.2, 0.2)
    return split(_standard((x + slope + noise * random.normal(size=x.shape))[:, None]),
                 floats(there)[:, None], seed=seed)  # fmt: skip


GROUNDS = np.array([[10, 25, 50], [10, 35, 12], [55, 60, 20], [50, 50, 52], [60, 45, 30], [25, 45, 20]]) / 100


@cache
def fields(seed: int, rows: int = 3400, noise: float = 0.1) -> Split:
    """What is the land used for? Water, wood, crops, houses, bare earth or an orchard: N x 3 x 14 x 14."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 6, rows)
    down, right = _places(random, rows, np.pi, 0.3)
    rough = random.normal(size=(rows, SIDE, SIDE))
    smooth = (rough + np.roll(rough, 1, 1) + np.roll(rough, 1, 2) + np.roll(rough, (1, 1), (1, 2))) / 2
    often = _one(random, rows, 7, 10)
    grid = np.maximum(np.cos(often * down), np.cos(often * right))
    kinds = [0.1 * smooth, 0.5 * rough, np.cos(often * right), np.where(grid > 0.5, 0.9, -0.4) + 0.2 * rough,
             0.6 * smooth, 1.5 * (np.cos(often * down) * np.cos(often * right) > 0.3) - 0.4]  # fmt: skip
    light = 1 + 0.35 * np.choose(label[:, None, None], kinds)
    tone = GROUNDS[label] * random.uniform(0.7, 1.4, (rows, 1)) + 0.07 * random.normal(size=(rows, 3))
    x = (tone[:, :, None, None] * light[:, None]).clip(0, 1)
    return split(_standard(x + noise * random.normal(size=x.shape)), torch.tensor(label), seed=seed)


@cache
def coloured(seed: int, rows: int = 2600) -> Split:
    """Marks on skin in grey, and in colour."""
    x = _standard(_grown(np.random.default_rng(seed), rows)[0])
    return split(x.mean(1, keepdim=True), x, seed=seed)


@cache
def by_themselves(kind: str, seed: int, rows: int = 2800) -> Split:
    """Chests (standardised) or arms (from 0 to 1) without noise, told by themselves: N x 1 x 14 x 14."""
    random = np.random.default_rng(seed)
    x = (
        floats(_posed(random, rows)[0])[:, None]
        if kind == "arms"
        else _standard(_breathed(random, rows)[0][:, None])
    )
    return split(x, x, seed=seed)
