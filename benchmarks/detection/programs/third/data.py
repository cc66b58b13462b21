"""Data of the third held-out set: scikit-learn's own in other roles, and what is made here."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn import datasets

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = [
    "arctan", "beats", "blocks", "clicks_by_field", "clusters", "community", "crescents", "descriptions",
    "faint", "halls", "lesions", "linear", "lorenz", "malignant",
    "noisy_yes", "offers", "pairs", "parity", "parity_of_digits", "pieces", "ranked",
    "rings_of_points", "rows_of_digits", "scatter", "sessions", "sorted_rows", "terciles", "topics",
    "whole_digits", "wool",
]  # fmt: skip


def _numbers(x: np.ndarray, y: np.ndarray) -> Split:
    """Standardised columns, and standardised targets in a column."""
    return split(floats(scaled(x)), floats(scaled(y))[:, None], seed=71)


@cache
def parity(bits: int = 8, rows: int = 2400) -> Split:
    """Is the number of ones among the first three bits odd? Nothing is learnt for long, and then all."""
    x = np.random.default_rng(101).integers(0, 2, (rows, bits))
    return split(floats(2.0 * x - 1), torch.tensor(x[:, :3].sum(1) % 2), seed=71)


@cache
def arctan() -> Split:
    """Phase of a circuit by its parts (Friedman's third)."""
    return _numbers(*datasets.make_friedman3(1600, noise=0.1, random_state=102))


@cache
def parity_of_digits() -> Split:
    """Is a written digit odd? Pixels from 0 to 1."""
    found = datasets.load_digits()
    return split(floats(found.data / 16.0), floats(found.target % 2)[:, None], seed=72)


@cache
def whole_digits() -> Split:
    """Written digits with one channel, pixels from -1 to 1."""
    found = datasets.load_digits()
    return split(floats(found.images / 8.0 - 1)[:, None], torch.tensor(found.target), seed=73)


@cache
def rows_of_digits() -> Split:
    """Written digits as eight rows, one after the other."""
    found = datasets.load_digits()
    return split(floats((found.images - 5.0) / 6.0), torch.tensor(found.target), seed=74)


@cache
def pairs() -> Split:
    """Two digits of 0 to 5 as two channels: are they the same?"""
    found, random = datasets.load_digits(), np.random.default_rng(103)
    images, label = found.images[found.target < 5] / 8.0 - 1, found.target[found.target < 5]
    left = random.integers(0, len(label), 3000)
    same = random.random(3000) < 0.5
    right = np.array([
        random.choice(np.nonzero((label == label[one]) == alike)[0])
        for one, alike in zip(left, same, strict=True)
    ])  # fmt: skip
    return split(floats(np.stack([images[left], images[right]], 1)), floats(same)[:, None], seed=76)


@cache
def terciles() -> Split:
    """Does diabetes progress little, somewhat or much?"""
    found = datasets.load_diabetes()
    place = np.digitize(found.target, np.quantile(found.target, [1 / 3, 2 / 3]))
    return split(floats(scaled(found.data)), torch.tensor(place), seed=77)


@cache
def malignant() -> Split:
    """Tumours; the malignant ones are one in thirteen of the train rows."""
    found = datasets.load_breast_cancer()
    (x, y), held = split(floats(scaled(found.data)), torch.tensor(1 - found.target), seed=78)
    keep = (y == 0) | (torch.cumsum(y, 0) <= 22)
    return (x[keep], y[keep]), held


@cache
def lesions() -> Split:
    """All that was measured of tumours: nothing to be told but itself."""
    x = floats(scaled(datasets.load_breast_cancer().data)).clamp(-4, 4)
    return split(x, x, seed=79)


@cache
def faint() -> Split:
    """Targets in thousandths, as a physicist leaves them."""
    random = np.random.default_rng(104)
    x = random.uniform(-1, 1, (1600, 5))
    y = 1e-3 * (np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3]))
    return split(floats(x), floats(y + 5e-5 * random.normal(size=1600))[:, None], seed=80)


@cache
def scatter() -> Split:
    """A curve whose noise grows along it."""
    random = np.random.default_rng(105)
    x = random.uniform(-2, 2, (2000, 3))
    y = np.sin(2 * x[:, 0]) + 0.4 * x[:, 1] + np.exp(0.8 * x[:, 2] - 1.8) * random.normal(size=2000)
    return split(floats(x), floats(y)[:, None], seed=81)


@cache
def noisy_yes() -> Split:
    """Two classes; three of ten train labels are told wrongly, those held out are right."""
    x, y = datasets.make_classification(
        3000, 20, n_informative=6, n_redundant=2, flip_y=0.0, class_sep=1.3, random_state=106
    )
    (x, y), held = split(floats(scaled(x)), torch.tensor(y), seed=82)
    wrong = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) < 0.3
    return (x, torch.where(wrong, 1 - y, y)), held


@cache
def clusters() -> Split:
    """Twelve clouds in twenty dimensions."""
    x, y = datasets.make_blobs(2400, 20, centers=12, cluster_std=5.0, random_state=107)
    return split(floats(scaled(x)), torch.tensor(y), seed=83)


@cache
def linear() -> Split:
    """A line in ten dimensions, and hardly any noise: learnt within some steps."""
    return _numbers(*datasets.make_regression(1200, 10, n_informative=10, noise=5.0, random_state=108))


@cache
def pieces() -> Split:
    """Another plane in each quarter of the field."""
    random = np.random.default_rng(109)
    x = random.uniform(-1, 1, (2000, 6))
    slopes = random.normal(size=(4, 6))
    quarter = 2 * (x[:, 0] > 0) + (x[:, 1] > 0)
    return _numbers(x, (x * slopes[quarter]).sum(1) + 0.05 * random.normal(size=2000))


@cache
def crescents() -> Split:
    """Points of two crescents, without labels."""
    x, _ = datasets.make_moons(2400, noise=0.08, random_state=110)
    return split(floats(scaled(x)), torch.zeros(2400, 1), seed=84)


@cache
def offers(arms: int = 5) -> Split:
    """A visitor, and what each offer would earn: to be tried out, not told."""
    random = np.random.default_rng(111)
    x, taste = random.normal(size=(2400, 6)), random.normal(size=(6, arms))
    chance = 1 / (1 + np.exp(-1.5 * x @ taste))
    return split(floats(x), floats(chance), seed=85)


def _pictures(side: int, count: int, seed: int) -> np.ndarray:
    """Coloured squares cut out of both pictures: (N, 3, side, side)."""
    random = np.random.default_rng(seed)
    found = []
    for name in ("china.jpg", "flower.jpg"):
        whole = datasets.load_sample_image(name).astype(np.float32) / 255.0
        places = random.integers(0, np.array(whole.shape[:2]) - 2 * side, (count // 2, 2))
        found += [whole[r : r + 2 * side : 2, c : c + 2 * side : 2].transpose(2, 0, 1) for r, c in places]
    return np.stack(found)


@cache
def halls() -> Split:
    """Squares of both pictures: is it the left or the right half, and of which?"""
    random, x, label = np.random.default_rng(112), [], []
    for place, name in enumerate(("china.jpg", "flower.jpg")):
        whole = datasets.load_sample_image(name).astype(np.float32) / 255.0
        for row, column in random.integers(0, np.array(whole.shape[:2]) - 24, (700, 2)):
            x.append(whole[row : row + 24 : 2, column : column + 24 : 2].transpose(2, 0, 1))
            label.append(2 * place + int(column > whole.shape[1] / 2))
    x = np.stack(x)
    return split(floats((x - x.mean((0, 2, 3), keepdims=True)) / x.std()), torch.tensor(label), seed=103)


@cache
def topics() -> Split:
    """Is a square of the temple or of the flower, and is it bright?"""
    x = _pictures(12, 1500, 114)
    bright = x.mean((1, 2, 3)) > np.median(x.mean((1, 2, 3)))
    label = 2 * (np.arange(len(x)) >= len(x) // 2) + bright
    return split(floats((x - x.mean((0, 2, 3), keepdims=True)) / x.std()), torch.tensor(label), seed=88)


@cache
def wool(side: int = 40) -> Split:
    """Places of a grey piece of the flower, and how bright it is there."""
    whole = datasets.load_sample_image("flower.jpg").astype(np.float32).mean(2) / 255.0
    piece = whole[120 : 120 + 4 * side : 4, 260 : 260 + 4 * side : 4]
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 2, indexing="ij"), -1).reshape(-1, 2)
    bright = piece.flatten() - piece.mean()
    return split(floats(grid), floats(bright / bright.std())[:, None], held=0.2, seed=89)


@cache
def rings_of_points(points: int = 16) -> Split:
    """Sixteen points in space: on a ball, in a cube, on a ring or on two planes?"""
    random = np.random.default_rng(116)
    label = random.integers(0, 4, 1600)
    cloud = random.normal(size=(1600, points, 3))
    ball = cloud / np.linalg.norm(cloud, axis=-1, keepdims=True)
    cube = random.uniform(-1, 1, (1600, points, 3))
    ring = np.concatenate([ball[..., :2] / np.linalg.norm(ball[..., :2], axis=-1, keepdims=True),
                           0 * ball[..., 2:]], -1)  # fmt: skip
    plane = cube * [1, 1, 0] + [0, 0, 0.6] * np.sign(random.normal(size=(1600, points, 1)))
    x = np.stack([ball, cube, ring, plane])[label, np.arange(1600)]
    x = x * random.uniform(0.6, 1.4, (1600, 1, 1)) + 0.1 * random.normal(size=x.shape)
    return split(floats(x), torch.tensor(label), seed=91)


@cache
def beats(length: int = 48) -> Split:
    """Pulses of a heart; one of twelve has its second wave missing or doubled."""
    random = np.random.default_rng(117)
    odd = random.random(2400) < 1 / 12
    time = np.arange(length)[None]
    shift = random.uniform(-4, 4, (2400, 1))

    def wave(place: float, width: float) -> np.ndarray:
        return np.exp(-(((time - place - shift) / width) ** 2))

    second = np.where(odd & (random.random(2400) < 0.5), 0.0, 0.5)[:, None]
    x = 0.3 * wave(10, 2) + 1.4 * wave(18, 1.2) + second * wave(32, 3)
    x += np.where(odd & (second[:, 0] > 0), 0.5, 0.0)[:, None] * wave(41, 2)
    x += 0.12 * random.normal(size=x.shape)
    return split(floats((x - x.mean()) / x.std())[:, None], floats(odd)[:, None], seed=92)


@cache
def lorenz(window: int = 16) -> Split:
    """A butterfly of weather; where it is five steps later."""
    state, rows = np.array([1.0, 1.0, 20.0]), []
    for _ in range(6400):
        x, y, z = state
        state = state + 0.01 * np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        rows.append(state)
    series = scaled(np.stack(rows)[400::3])
    starts = np.arange(0, len(series) - window - 5)
    return split(floats(series[starts[:, None] + np.arange(window)]), floats(series[starts + window + 4]),
                 seed=93)  # fmt: skip


def _letters(name: str) -> np.ndarray:
    """Text about a data set: 1 for a blank, 2 to 27 for letters, 28 for what else there is."""
    text = " ".join(getattr(datasets, f"load_{name}")().DESCR.lower().split())
    return np.array([1 if one == " " else ord(one) - 95 if "a" <= one <= "z" else 28 for one in text])


@cache
def descriptions(window: int = 32) -> Split:
    """Which of three data sets is a piece of text about?"""
    random, x, y = np.random.default_rng(119), [], []
    for label, name in enumerate(("iris", "breast_cancer", "diabetes")):
        text = _letters(name)
        starts = random.integers(0, len(text) - window, 700)
        x.append(text[starts[:, None] + np.arange(window)])
        y += [label] * 700
    return split(torch.tensor(np.concatenate(x)), torch.tensor(y), seed=95)


@cache
def sorted_rows(length: int = 8, tokens: int = 12) -> Split:
    """Tokens, and the same in order."""
    x = np.random.default_rng(121).integers(0, tokens, (3000, length))
    return split(torch.tensor(x), torch.tensor(np.sort(x, 1)), seed=97)


@cache
def blocks(pairs: int = 5, keys: int = 8, values: int = 5) -> Split:
    """Some keys, each with a value, and at last a key: which value had it?"""
    random = np.random.default_rng(122)
    named = np.stack([random.permutation(keys)[:pairs] for _ in range(3000)])
    given = random.integers(0, values, (3000, pairs))
    asked = random.integers(0, pairs, 3000)
    x = np.concatenate([named * values + given, keys * values + named[np.arange(3000), asked][:, None]], 1)
    return split(torch.tensor(x), torch.tensor(given[np.arange(3000), asked]), seed=98)


@cache
def sessions(items: int = 40, length: int = 8) -> Split:
    """What a visitor looked at, one after the other (1 to 40), and the next."""
    random = np.random.default_rng(123)
    follow = np.stack([random.permutation(items)[:4] for _ in range(items)])
    popular = 1.0 / np.arange(1, items + 1) ** 0.7
    rows = np.zeros((2600, length + 1), np.int64)
    rows[:, 0] = random.choice(items, 2600, p=popular / popular.sum())
    for place in range(1, length + 1):
        usual = follow[rows[:, place - 1], random.choice(4, 2600, p=[0.6, 0.2, 0.12, 0.08])]
        rows[:, place] = np.where(random.random(2600) < 0.9, usual, random.integers(0, items, 2600))
    return split(torch.tensor(rows[:, :-1] + 1), torch.tensor(rows[:, -1]), seed=99)


@cache
def ranked(users: int = 90, items: int = 60) -> Split:
    """A user, an item taken, an item left alone; which of the last two held-out users prefer."""
    random = np.random.default_rng(124)
    left, right = random.normal(size=(users, 4)), random.normal(size=(items, 4))
    u = random.integers(0, users, 6000)
    i, j = random.integers(0, items, (2, 6000))
    taken = (left[u] * right[i]).sum(1) + 0.5 * random.logistic(size=6000) > (left[u] * right[j]).sum(1)
    x = np.stack([u, np.where(taken, i, j), np.where(taken, j, i) + items], 1)
    return split(torch.tensor(x), torch.ones(6000, 1), seed=100)


@cache
def clicks_by_field() -> Split:
    """Five kinds of things known of an advertisement, numbered through; was it clicked? One in six was."""
    random = np.random.default_rng(125)
    sizes = np.array([30, 20, 12, 7, 4])
    x = np.stack([random.choice(size, 5000, p=random.dirichlet(np.ones(size))) for size in sizes], 1)
    factors = [random.normal(size=(size, 3)) for size in sizes]
    chosen = np.stack([one[x[:, place]] for place, one in enumerate(factors)], 1)
    both = (chosen.sum(1) ** 2 - (chosen**2).sum(1)).sum(1)
    y = both + random.logistic(size=5000) > np.quantile(both, 0.84)
    x += np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return split(torch.tensor(x), floats(y)[:, None], seed=101)


@cache
def community(nodes: int = 320) -> tuple[Split, torch.Tensor, torch.Tensor]:
    """Numbers of people with their circle; what is known of each; who knows whom (normalised)."""
    random = np.random.default_rng(126)
    circle = random.integers(0, 4, nodes)
    alike = circle[:, None] == circle
    known = np.triu(random.random((nodes, nodes)) < np.where(alike, 0.06, 0.012), 1)
    ties = (known + known.T + np.eye(nodes)).astype(float)
    degree = ties.sum(1) ** -0.5
    x = 0.5 * np.eye(4)[circle] @ random.normal(size=(4, 12)) + random.normal(size=(nodes, 12))
    whom = floats(degree[:, None] * ties * degree)
    return split(torch.arange(nodes), torch.tensor(circle), 0.4, seed=102), floats(x), whom
