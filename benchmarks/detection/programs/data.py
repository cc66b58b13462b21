"""Data sets that scikit-learn brings along, and made ones: tensors, split into train and held-out rows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn import datasets

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Split",
    "bunch",
    "digits",
    "floats",
    "made_regression",
    "rated",
    "rings",
    "scaled",
    "sequences",
    "split",
    "text",
    "waves",
]

Split = tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def split(inputs: torch.Tensor, targets: torch.Tensor, held: float = 0.25, seed: int = 0) -> Split:
    """Train and held-out rows."""
    rows = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    cut = int(len(rows) * (1 - held))
    first, rest = rows[:cut], rows[cut:]
    return (inputs[first], targets[first]), (inputs[rest], targets[rest])


def floats(x: np.ndarray) -> torch.Tensor:
    """The same numbers in single precision."""
    return torch.tensor(x, dtype=torch.float32)


def scaled(x: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and spread 1."""
    return (x - x.mean(0)) / (x.std(0) + 1e-9)


@cache
def digits(image: bool = False) -> Split:  # noqa: FBT001, FBT002
    """8 x 8 digits, standardised over all pixels."""
    data = datasets.load_digits()
    x = floats((data.images - 4.9) / 6.0)
    return split(x.unsqueeze(1) if image else x.flatten(1), torch.tensor(data.target))


@cache
def bunch(name: str) -> Split:
    """A table of scikit-learn with standardised columns; numbers are standardised as targets too."""
    data = getattr(datasets, f"load_{name}")()
    x = scaled(data.data)
    y = data.target
    if name in ("diabetes", "linnerud"):
        y = (y - y.mean(0)) / y.std(0)
        return split(floats(x), floats(y).reshape(len(y), -1))
    return split(floats(x), torch.tensor(y))


@cache
def made_regression() -> Split:
    """A smooth function of 8 numbers, with noise."""
    random = np.random.default_rng(5)
    x = random.normal(size=(1200, 8))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] ** 2 + 0.1 * random.normal(size=1200)
    y = (y - y.mean()) / y.std()
    return split(floats(x), floats(y)[:, None])


@cache
def rings(classes: int = 3) -> Split:
    """Spirals in the plane: not to be told by a line."""
    random = np.random.default_rng(7)
    each = 500
    radius = np.sqrt(random.uniform(0.05, 1, (classes, each)))
    angle = (
        4 * radius
        + np.arange(classes)[:, None] * 2 * np.pi / classes
        + random.normal(0, 0.1, (classes, each))
    )
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1, 2) * 1.7
    return split(floats(x), torch.arange(classes).repeat_interleave(each))


@cache
def patterns() -> Split:
    """12 x 12 pictures of stripes in four directions, with noise."""
    random = np.random.default_rng(11)
    grid = np.stack(np.meshgrid(np.arange(12), np.arange(12), indexing="ij"), -1)
    label = random.integers(0, 4, 1200)
    way = np.stack([np.cos(label * np.pi / 4), np.sin(label * np.pi / 4)], -1)
    phase = random.uniform(0, 2 * np.pi, 1200)
    x = np.sin(1.3 * np.einsum("hwc,nc->nhw", grid, way) + phase[:, None, None])
    x = (x + random.normal(0, 0.6, x.shape)) / 0.93
    return split(floats(x[:, None]), torch.tensor(label))


@cache
def waves(steps: int = 24) -> Split:
    """Sums of two sines; the target is the next value."""
    random = np.random.default_rng(3)
    time = np.arange(steps + 1)
    omega = random.uniform(0.2, 0.9, (1000, 2, 1))
    phase = random.uniform(0, 2 * np.pi, (1000, 2, 1))
    series = np.sin(omega * time + phase).sum(1)
    x, y = series[:, :-1, None], series[:, -1:]
    return split(floats(x), floats(y))


@cache
def sequences(length: int = 16, tokens: int = 12) -> Split:
    """Token rows; the class says which of three marked tokens comes first. Token 0 pads the end."""
    random = np.random.default_rng(13)
    x = random.integers(4, tokens, (2000, length))
    label = np.zeros(2000, np.int64)
    for row in range(2000):
        places = np.sort(random.choice(length - 4, 2, replace=False))
        marks = random.choice(3, 2, replace=False)
        x[row, places] = marks + 1
        label[row] = marks[0]
        x[row, length - random.integers(0, 4) :] = 0
    return split(torch.tensor(x), torch.tensor(label))


@cache
def text(window: int = 24) -> Split:
    """Characters of the descriptions of scikit-learn's data: windows, and the next character at each place."""  # noqa: E501
    words = " ".join(
        getattr(datasets, f"load_{name}")().DESCR for name in ("digits", "wine", "diabetes", "iris")
    )
    words = "".join(one if one.isalpha() and one.isascii() else " " for one in words.lower())
    words = " ".join(words.split())
    codes = torch.tensor([0 if one == " " else ord(one) - 96 for one in words])
    starts = torch.arange(0, len(codes) - window - 1, 5)
    rows = codes[starts[:, None] + torch.arange(window + 1)]
    return split(rows[:, :-1], rows[:, 1:])


@cache
def rated(users: int = 60, items: int = 40) -> Split:
    """Pairs of a user and an item with a rating: hidden factors and noise."""
    random = np.random.default_rng(17)
    left, right = random.normal(size=(users, 3)), random.normal(size=(items, 3))
    u, i = random.integers(0, users, 3000), random.integers(0, items, 3000)
    y = (left[u] * right[i]).sum(1) / 1.7 + 0.2 * random.normal(size=3000)
    return split(torch.tensor(np.stack([u, i], 1)), floats(y)[:, None])


def unbalanced(data: Split, keep: Sequence[int]) -> Split:
    """Keep only so many train rows of each class."""
    (x, y), held = data
    rows = torch.cat([torch.nonzero(y == one).flatten()[:count] for one, count in enumerate(keep)])
    return (x[rows], y[rows]), held
