"""Tables of the sixth set: mixed columns, and answers that hang on them by a formula or a smooth function."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.fifth.tables_data import _floats, _scaled

__all__ = ["amounts", "chances", "classes", "cooling", "few", "moved", "plant"]


def _mixed(random: np.random.Generator, rows: int, numbers: int, kinds: int) -> np.ndarray:
    """Numbers that hang together, standardised, every third of them skewed; and one of several kinds."""
    shared = random.normal(size=(rows, 4)) @ random.normal(size=(4, numbers)) / 4
    x = shared + random.normal(size=(rows, numbers))
    x[:, ::3] = np.exp(0.5 * x[:, ::3])
    return (
        np.column_stack([_scaled(x), np.eye(kinds)[random.integers(0, kinds, rows)]]) if kinds else _scaled(x)
    )


def _answers(random: np.random.Generator, x: np.ndarray, outputs: int, bend: float) -> np.ndarray:
    """A line of the columns and some bends of them, standardised: (rows, outputs)."""
    width = x.shape[1]
    line = x @ random.normal(size=(width, outputs)) / np.sqrt(width)
    turns = np.tanh(x @ random.normal(size=(width, 12)) / np.sqrt(width) + 0.5 * random.normal(size=12))
    return _scaled(line + bend * turns @ random.normal(size=(12, outputs)) / 2)


@cache
def amounts(
    seed: int, rows: int = 2600, numbers: int = 8, kinds: int = 3, outputs: int = 1, noise: float = 0.3
) -> Split:
    """How much? Standardised numbers, with noise of a longer tail than normal."""
    random = np.random.default_rng(seed)
    x = _mixed(random, rows, numbers, kinds)
    y = _answers(random, x, outputs, 1.0) + noise * random.standard_t(6, (rows, outputs))
    return split(_floats(x), _floats(_scaled(y)), seed=seed)


@cache
def chances(
    seed: int, rows: int = 2600, numbers: int = 8, kinds: int = 3, outputs: int = 1, share: float = 0.5
) -> Split:
    """Yes or no, once or several times? A share of the rows is a yes, and some of them by chance."""
    random = np.random.default_rng(seed)
    x = _mixed(random, rows, numbers, kinds)
    score = _answers(random, x, outputs, 1.0) + 0.35 * random.logistic(size=(rows, outputs))
    return split(_floats(x), _floats(score > np.quantile(score, 1 - share, axis=0)), seed=seed)


@cache
def classes(
    seed: int, rows: int = 2600, numbers: int = 8, kinds: int = 3, count: int = 4, noise: float = 0.25
) -> Split:
    """Which of several? The largest of as many answers."""
    random = np.random.default_rng(seed)
    x = _mixed(random, rows, numbers, kinds)
    score = _answers(random, x, count, 1.0) + noise * random.gumbel(size=(rows, count))
    return split(_floats(x), torch.tensor(score.argmax(1)), seed=seed)


def few(found: Split, rows: int) -> Split:
    """Only so many rows to learn from."""
    (x, y), held = found
    return (x[:rows], y[:rows]), held


@cache
def plant(rows: int = 2400) -> Split:
    """Output of a gas and steam turbine by the air's heat, pressure and damp, and the condenser's vacuum."""
    random = np.random.default_rng(601)
    warm = random.normal(19, 7.5, rows)
    vacuum = 35 + 0.9 * warm + 6 * random.normal(size=rows)
    press, damp = (
        1013 + 6 * random.normal(size=rows),
        (95 - warm + 14 * random.normal(size=rows)).clip(25, 100),
    )
    y = 500 - 1.7 * warm - 0.3 * vacuum + 0.25 * (press - 1013) - 0.14 * damp
    y += 0.05 * (warm - 19) ** 2 + 14 * np.tanh((vacuum - 52) / 6) - 0.012 * (damp - 70) * (warm - 19)
    x = np.column_stack([warm, vacuum, press, damp])
    return split(_floats(_scaled(x)), _floats(_scaled(y + 3 * random.normal(size=rows)))[:, None], seed=601)


@cache
def cooling(rows: int = 2400) -> Split:
    """What a building needs for heating and for cooling, by its shape, glass, walls, site and people."""
    random = np.random.default_rng(602)
    compact, glass, wall = (
        random.uniform(0.6, 1.0, rows),
        random.uniform(0, 0.5, rows),
        random.gamma(4, 0.2, rows),
    )
    height, south = random.choice([3.5, 7.0], rows), random.uniform(-1, 1, rows)
    sun, people = random.gamma(5, 0.2, rows), random.poisson(4, rows)
    loss = (1.4 - compact) * height * (0.4 + glass) / (0.5 + wall)
    gain = glass * sun * (1 + 0.8 * south) * height + 0.25 * people
    y = np.stack([np.maximum(0, 3 * loss - 0.6 * gain), np.maximum(0, 2 * gain - 0.8 * loss)], 1)
    y = _scaled(y) + 0.15 * random.normal(size=y.shape)
    x = np.column_stack([compact, glass, wall, height, south, sun, people])
    return split(_floats(_scaled(x)), _floats(_scaled(y)), seed=602)


def moved(found: Split, rows: int = 1400) -> Split:
    """The same columns of other devices: stretched, shifted and mixed a little; fewer rows to learn from."""
    random = np.random.default_rng(603)
    width = found[0][0].shape[1]
    mix = _floats(np.diag(random.uniform(0.6, 1.5, width)) + 0.12 * random.normal(size=(width, width)))
    shift = _floats(0.5 * random.normal(size=width))
    (x, y), (held_x, held_y) = found
    return (x[-rows:] @ mix + shift, y[-rows:]), (held_x @ mix + shift, held_y)
