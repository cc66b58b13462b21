"""Data of the second held-out set: tables, pictures, sequences and pairs, most of them made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn import datasets

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = [
    "chains", "chirps", "clicks", "colours", "counts", "curve", "few", "flipped", "friedman2", "hastie",
    "letters", "masks", "places", "predators", "prices", "quantiles", "rare", "reversed_rows", "shapes",
    "tags", "words",
]  # fmt: skip


@cache
def quantiles() -> Split:
    """Three shells of a cloud in eight dimensions."""
    x, y = datasets.make_gaussian_quantiles(n_samples=1800, n_features=8, n_classes=3, random_state=41)
    return split(floats(x), torch.tensor(y))


@cache
def hastie() -> Split:
    """Is a point of ten dimensions far from the middle? One column of zeros and ones."""
    x, y = datasets.make_hastie_10_2(2400, random_state=42)
    return split(floats(x), floats(y > 0)[:, None])


@cache
def friedman2() -> Split:
    """Reactance of a circuit, by parts of very different size (standardised)."""
    x, y = datasets.make_friedman2(1500, noise=40.0, random_state=43)
    return split(floats(scaled(x)), floats(scaled(y))[:, None])


@cache
def curve() -> Split:
    """How far along an S in space a point lies."""
    x, y = datasets.make_s_curve(1500, noise=0.05, random_state=44)
    return split(floats(scaled(x)), floats(scaled(y))[:, None])


@cache
def prices() -> Split:
    """Long tails, a rare kind, flags: what tables of prices are like."""
    random = np.random.default_rng(45)
    size = random.lognormal(0, 0.9, (1600, 3))
    kind = np.eye(5)[random.choice(5, 1600, p=[0.5, 0.25, 0.15, 0.07, 0.03])]
    flags = (random.random((1600, 2)) < 0.08).astype(float)
    y = size[:, 0] * 2 + np.sqrt(size[:, 1]) + kind @ np.array([0, 1, -1, 2, 4]) + flags @ np.array([1, -2])
    y += 0.3 * random.standard_t(3, 1600)
    return split(floats(np.concatenate([scaled(size), kind, flags], 1)), floats(scaled(y))[:, None])


@cache
def flipped() -> Split:
    """Four classes; a fifth of the labels is wrong."""
    x, y = datasets.make_classification(
        2400, 16, n_informative=8, n_classes=4, flip_y=0.2, class_sep=1.5, random_state=46
    )
    return split(floats(scaled(x)), torch.tensor(y))


@cache
def counts() -> Split:
    """How often something happens, by six numbers."""
    random = np.random.default_rng(47)
    x = random.normal(size=(1600, 6))
    rate = np.exp(0.8 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * x[:, 2] * x[:, 3])
    return split(floats(x), floats(random.poisson(np.minimum(rate, 60.0)))[:, None])


@cache
def few() -> Split:
    """A hundred and twenty rows of four classes."""
    x, y = datasets.make_blobs(120, 5, centers=4, cluster_std=2.2, random_state=48)
    return split(floats(scaled(x)), torch.tensor(y))


@cache
def rare() -> Split:
    """One row of fifteen is what is looked for."""
    random = np.random.default_rng(49)
    x = random.normal(size=(2600, 9))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.3 * random.normal(size=2600)) > 2.35
    return split(floats(x), floats(y)[:, None])


def _figures(count: int, seed: int, side: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masks of discs, squares, crosses and rings; their kinds; their middles as shares of the side."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 4, count)
    middle = random.uniform(3.5, side - 4.5, (count, 2))
    radius = random.uniform(2.2, 3.4, count)[:, None, None]
    rows, columns = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    down, across = rows - middle[:, :1, None], columns - middle[:, 1:, None]
    far = np.sqrt(down**2 + across**2)
    masks = np.stack([
        far < radius, np.maximum(abs(down), abs(across)) < radius * 0.85,
        (np.minimum(abs(down), abs(across)) < 0.8) & (far < radius), abs(far - radius) < 0.8,
    ], 1)  # fmt: skip
    return masks[np.arange(count), kind].astype(np.float32), kind, middle / side


def _drawn(masks: np.ndarray, seed: int, noise: float) -> torch.Tensor:
    """Noisy pictures with one channel, standardised."""
    random = np.random.default_rng(seed)
    x = masks * random.uniform(0.7, 1.3, (len(masks), 1, 1)) + noise * random.normal(size=masks.shape)
    return floats((x - x.mean()) / x.std())[:, None]


@cache
def shapes() -> Split:
    """Which of four shapes?"""
    masks, kind, _ = _figures(1600, 50)
    return split(_drawn(masks, 51, 0.3), torch.tensor(kind))


@cache
def places() -> Split:
    """Where is the shape? Two shares of the side."""
    masks, _, middle = _figures(1400, 52)
    return split(_drawn(masks, 53, 0.3), floats(middle))


@cache
def masks() -> Split:
    """Which pixels are the shape's?"""
    found, _, _ = _figures(1200, 54)
    return split(_drawn(found, 55, 0.5), floats(found)[:, None])


@cache
def colours() -> Split:
    """Coloured 8 x 8 patches: sky and roofs of the temple, or the flower's two halves."""
    random = np.random.default_rng(56)
    found, label = [], []
    for place, name in enumerate(("china.jpg", "flower.jpg")):
        whole = datasets.load_sample_image(name).astype(np.float32) / 255.0
        for _ in range(800):
            row, column = random.integers(0, whole.shape[0] - 8), random.integers(0, whole.shape[1] - 8)
            found.append(whole[row : row + 8, column : column + 8].transpose(2, 0, 1))
            label.append(2 * place + int(row > whole.shape[0] / 2))
    x = np.stack(found)
    return split(floats((x - x.mean((0, 2, 3), keepdims=True)) / x.std()), torch.tensor(label))


@cache
def chirps(length: int = 32) -> Split:
    """Tones that rise, fall or stay, in noise."""
    random = np.random.default_rng(57)
    label = random.integers(0, 3, 1500)
    time = np.arange(length) / length
    bend = (label - 1)[:, None] * random.uniform(4, 7, (1500, 1))
    phase = 2 * np.pi * ((5 * time) + bend * (time - 0.5) ** 2 + random.random((1500, 1)))
    x = np.sin(phase) + 0.3 * random.normal(size=phase.shape)
    return split(floats(x / x.std())[..., None], torch.tensor(label))


@cache
def predators(window: int = 20) -> Split:
    """Numbers of hares and foxes; the next of both."""
    random = np.random.default_rng(58)
    state, rows = np.array([1.2, 0.8]), []
    for _ in range(2200):
        hares, foxes = state
        step = np.array([hares * (1.1 - 0.9 * foxes), foxes * (0.8 * hares - 0.9)])
        state = np.clip(state + 0.12 * step + 0.01 * random.normal(size=2), 0.05, 6.0)
        rows.append(state)
    series = scaled(np.log(np.stack(rows)))
    starts = np.arange(0, len(series) - window - 1, 2)
    cut = series[starts[:, None] + np.arange(window + 1)]
    return split(floats(cut[:, :-1]), floats(cut[:, -1]))


@cache
def tags(length: int = 10) -> Split:
    """Each token's tag: whether it is larger than the one before, the same, or smaller."""
    random = np.random.default_rng(59)
    x = random.integers(1, 8, (1800, length))
    y = np.sign(np.diff(x, axis=1, prepend=x[:, :1])) + 1
    return split(torch.tensor(x), torch.tensor(y))


@cache
def reversed_rows(length: int = 8) -> Split:
    """Rows of tokens, and the same from behind."""
    x = np.random.default_rng(60).integers(0, 8, (2600, length))
    return split(torch.tensor(x), torch.tensor(x[:, ::-1].copy()))


@cache
def chains(length: int = 14, tokens: int = 10) -> Split:
    """Tokens (2 to 11) of three Markov chains: which?"""
    random = np.random.default_rng(61)
    moves = random.dirichlet(np.full(tokens, 0.35), (3, tokens)).cumsum(-1)
    label = random.integers(0, 3, 2000)
    x = np.zeros((2000, length), np.int64)
    now = random.integers(0, tokens, 2000)
    for place in range(length):
        now = (random.random(2000)[:, None] > moves[label, now]).sum(1).clip(0, tokens - 1)
        x[:, place] = now + 2
    return split(torch.tensor(x), torch.tensor(label))


@cache
def letters(window: int = 24) -> Split:
    """Letters of the descriptions of two data sets: windows, and the next letter at each place."""
    words = " ".join(getattr(datasets, f"load_{name}")().DESCR for name in ("breast_cancer", "linnerud"))
    words = " ".join("".join(one if "a" <= one <= "z" else " " for one in words.lower()).split())
    codes = torch.tensor([0 if one == " " else ord(one) - 96 for one in words])
    starts = torch.arange(0, len(codes) - window - 1, 3)
    rows = codes[starts[:, None] + torch.arange(window + 1)]
    return split(rows[:, :-1], rows[:, 1:])


@cache
def clicks(users: int = 80, items: int = 50) -> Split:
    """A user, an item (the popular ones far more often), and whether it was clicked."""
    random = np.random.default_rng(62)
    left, right = random.normal(size=(users, 3)), random.normal(size=(items, 3))
    popular = 1.0 / np.arange(1, items + 1)
    u, i = random.integers(0, users, 4000), random.choice(items, 4000, p=popular / popular.sum())
    chance = 1 / (1 + np.exp(-1.8 * (left[u] * right[i]).sum(1)))
    y = random.random(4000) < chance
    return split(torch.tensor(np.stack([u, i], 1)), floats(y)[:, None])


@cache
def words(vocabulary: int = 60) -> Split:
    """Pairs of words: beside each other in a text of six topics, or put together by chance."""
    random = np.random.default_rng(63)
    topics = random.dirichlet(np.full(vocabulary, 0.12), 6)
    topic = random.integers(0, 6, 2500)
    near = np.stack([[random.choice(vocabulary, p=topics[one]) for one in topic] for _ in range(2)], 1)
    far = np.stack([random.permutation(near[:, 0]), random.permutation(near[:, 1])], 1)
    return split(torch.tensor(np.concatenate([near, far])), floats(np.arange(5000) < 2500)[:, None])
