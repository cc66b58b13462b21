"""Series, chains of tokens and texts of the sixth set. Token 0 pads, 1 is unknown."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split
from benchmarks.detection.programs.fifth.sequences_data import floats

__all__ = ["across", "beats", "chains", "chains_tagged", "chains_told",
           "grammar", "lorenz", "pulses", "seasons", "systems"]  # fmt: skip


def across(found: Split) -> Split:
    """Channels before time."""
    (x, y), (held_x, held_y) = found
    return (x.transpose(1, 2), y), (held_x.transpose(1, 2), held_y)


@cache
def systems(
    classes: int, channels: int, length: int, seed: int, rows: int = 1600, noise: float = 0.7
) -> Split:
    """Which of some machines was heard? Each mixes two tones into the channels its own way: (N, L, C)."""
    random = np.random.default_rng(seed)
    pace, mixed = random.uniform(0.2, 1.1, (classes, 2)), random.normal(size=(classes, 2, channels))
    y = random.integers(0, classes, rows)
    turn = pace[y] * random.uniform(0.93, 1.07, (rows, 2))
    angle = turn[:, None] * np.arange(length)[:, None] + random.uniform(0, 2 * np.pi, (rows, 1, 2))
    x = np.einsum("nlk,nkc->nlc", np.sin(angle) * random.uniform(0.6, 1.2, (rows, 1, 2)), mixed[y])
    x += noise * random.normal(size=x.shape)
    return split(floats(x / x.std()), torch.tensor(y), seed=seed)


@cache
def seasons(
    window: int, ahead: int, periods: tuple[float, ...], seed: int, rows: int = 1600, noise: float = 0.25,
    *, shifted: bool = False,
) -> Split:  # fmt: skip
    """What was, beside the seasons' clocks, (N, L, 1 + seasons), and what comes; the end is held out.

    `shifted`: the next value at each place instead.
    """
    random = np.random.default_rng(seed)
    hours = 2 * rows + window + ahead
    t, level = np.arange(hours), np.zeros(hours)
    for place in range(1, hours):
        level[place] = 0.97 * level[place - 1] + 0.15 * random.normal()
    clock = [np.sin(2 * np.pi * t / one) for one in periods]
    high = level + sum((1 + 0.5 * level) * one / (1 + place) for place, one in enumerate(clock))
    high = high + noise * random.normal(size=hours)
    high = (high - high.mean()) / high.std()
    every = np.stack([high, *clock], 1)
    at = range(0, 2 * rows, 2)
    x = floats(np.stack([every[one : one + window] for one in at]))
    first, count = (1, window) if shifted else (window, ahead)
    y = floats(np.stack([high[one + first : one + first + count] for one in at]))
    cut = int(0.75 * rows)
    return (x[:cut], y[:cut]), (x[cut + window // 2 :], y[cut + window // 2 :])


@cache
def chains(
    states: int, words: int, length: int, seed: int, rows: int = 1600, kinds: int = 1, blur: float = 0.15
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens of hidden Markov chains, the state behind each, and which of `kinds` of chain it was."""
    random = np.random.default_rng(seed)
    stay = min(0.4, 2 * blur)
    step = (1 - stay) * random.dirichlet(np.full(states, 2 * blur), (kinds, states)) + stay * np.eye(states)
    says = random.dirichlet(np.full(words, blur), states)
    kind, state = random.integers(0, kinds, rows), random.integers(0, states, rows)
    x, behind = np.zeros((rows, length), np.int64), np.zeros((rows, length), np.int64)
    for place in range(length):
        draw, word = random.random((2, rows, 1))
        state = np.minimum((step[kind, state].cumsum(1) < draw).sum(1), states - 1)
        x[:, place] = np.minimum((says[state].cumsum(1) < word).sum(1), words - 1) + 2
        behind[:, place] = state
    x[random.random(x.shape) < 0.02] = 1
    return torch.tensor(x), torch.tensor(behind), torch.tensor(kind)


@cache
def chains_tagged(states: int, words: int, length: int, seed: int) -> Split:
    """Tokens, and the state at each place."""
    x, behind, _ = chains(states, words, length, seed)
    return split(x, behind, seed=seed)


@cache
def chains_told(states: int, words: int, length: int, seed: int, kinds: int) -> Split:
    """Tokens of chains of some length, and which kind of chain it was."""
    x, _, kind = chains(states, words, length, seed, kinds=kinds)
    source = torch.Generator().manual_seed(seed)
    end = torch.randint(2 * length // 3, length + 1, (len(x), 1), generator=source)
    return split(torch.where(torch.arange(length) < end, x, 0), kind, seed=seed)


@cache
def grammar(length: int = 16, rows: int = 1600) -> Split:
    """Small sentences in a row, and the next word at each place: verbs and endings agree with their nouns."""
    random = np.random.default_rng(611)
    found = np.zeros((rows, length + 1), np.int64)
    for row in found:
        told: list[int] = []
        while len(told) <= length:
            many = int(random.integers(2))
            noun = 4 + 2 * int(random.choice(8, p=np.arange(8, 0, -1) / 36)) + many
            verb = 20 + 2 * int(random.integers(6)) + many
            extra = [32 + int(random.integers(5))] * int(random.integers(2))
            told += [2 + many, *extra, noun, verb, 37 + (noun // 2 + verb // 2) % 4]
        row[:] = told[: length + 1]
    return split(torch.tensor(found[:, :-1]), torch.tensor(found[:, 1:]), seed=611)


@cache
def lorenz(length: int = 24, rows: int = 1200, seed: int = 612) -> Split:
    """Three numbers of Lorenz's weather, and what they are two samples on, at each place."""
    random = np.random.default_rng(seed)
    at = random.normal(size=(rows, 3)) * 8 + np.array([0, 0, 25])
    path = []
    for step in range(200 + (length + 2) * 6):
        x, y, z = at.T
        at = at + 0.01 * np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], 1)
        if step >= 200 and step % 6 == 0:
            path.append(at)
    found = np.stack(path, 1)
    found = (found - found.mean((0, 1))) / found.std((0, 1))
    seen = found + 0.05 * random.normal(size=found.shape)
    return split(floats(seen[:, :length]), floats(found[:, 2 : length + 2]), seed=seed)


@cache
def pulses(length: int = 40, rows: int = 1600) -> Split:
    """How often did a counter click (0 to 9)? Short pulses on a ground that wanders, in noise: (N, L, 1)."""
    random = np.random.default_rng(613)
    count = random.integers(0, 10, rows)
    x = 0.15 * random.normal(size=(rows, length)).cumsum(1) + 0.2 * random.normal(size=(rows, length))
    for row, many in zip(x, count, strict=True):
        at = random.choice(length - 3, many, replace=False)
        for place in at:
            row[place : place + 3] += np.array([1.6, 1.0, 0.4]) * random.uniform(0.8, 1.3)
    return split(floats((x - x.mean())[..., None] / x.std()), floats(count[:, None]), seed=613)


@cache
def beats(rows: int = 1500, length: int = 84) -> Split:
    """A heart's curve: sound, too wide, without its first wave, or one beat too early? (N, 1, L)."""
    random = np.random.default_rng(614)
    x, y, t = np.zeros((rows, 1, length)), random.integers(0, 4, rows), np.arange(length)
    for curve, kind in zip(x[:, 0], y, strict=True):
        every, first = random.uniform(24, 30), random.uniform(4, 20)
        at = np.arange(first, length, every)
        at[1] -= 0.3 * every * (kind == 3)
        wide, early = 1.2 if kind != 1 else 2.8, 0.35 * (kind != 2)
        since = t - at[:, None]
        waves = ((1.8, 0, wide), (0.45, 8, 2.5), (early, -6, 1.5))
        told = sum(high * np.exp(-0.5 * ((since - late) / long) ** 2) for high, late, long in waves)
        ground = 0.12 * random.normal(size=length) + 0.2 * np.sin(t / 30 + random.uniform(0, 6))
        curve[:] = told.sum(0) * np.exp(0.15 * random.normal()) + ground
    return split(floats((x - x.mean()) / x.std()), torch.tensor(y), seed=614)
