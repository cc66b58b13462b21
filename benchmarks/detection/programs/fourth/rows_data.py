"""Rows of things in the fourth held-out set: frames, tokens, letters, tones, pairs and graphs."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split
from benchmarks.detection.programs.third.data import _letters

__all__ = ["bags", "graphs", "liked", "marked", "order", "pendulum", "progressions", "prose", "sensors",
           "shops", "symbols", "tones"]  # fmt: skip


@cache
def symbols(rows: int = 1600, frames: int = 20) -> Split:
    """Frames of three to five sounds, each of them some frames long; the sounds are 1 to 5, 0 pads."""
    random = np.random.default_rng(231)
    sounds = random.normal(size=(6, 8))
    x, y = np.zeros((rows, frames, 8)), np.zeros((rows, 5), np.int64)
    for frame, wanted in zip(x, y, strict=True):
        frame[:] = sounds[0]
        many, at = random.integers(3, 6), random.integers(0, 2)
        for place in range(many):
            wanted[place], long = random.integers(1, 6), random.integers(1, 4)
            frame[at : at + long] = sounds[wanted[place]]
            at += long + 1
    return split(floats(x + 0.4 * random.normal(size=x.shape)), torch.tensor(y), seed=231)


@cache
def pendulum(window: int = 16, ahead: int = 6) -> Split:
    """A pendulum that is pushed in turns: sine, cosine and speed, and the same some steps later."""
    state, rows = np.array([0.5, 0.0]), []
    for step in range(5000):
        for _ in range(4):
            angle, speed = state
            push = 0.9 * np.sin(0.66 * step * 0.1)
            state = state + 0.025 * np.array([speed, push - 0.2 * speed - np.sin(angle)])
        rows.append([np.sin(state[0]), np.cos(state[0]), state[1]])
    series = np.random.default_rng(232).normal(scale=0.02, size=(5000, 3)) + scaled(np.array(rows))
    starts = np.arange(0, len(series) - window - ahead, 2)
    return split(floats(series[starts[:, None] + np.arange(window)]),
                 floats(series[starts + window + ahead - 1]), seed=232)  # fmt: skip


@cache
def order(rows: int = 2400, length: int = 12) -> Split:
    """Tokens 3 to 8, and at two places 1 or 2: in which order?"""
    random = np.random.default_rng(233)
    x = random.integers(3, 9, (rows, length))
    first, second = random.integers(1, 5, rows), random.integers(6, 11, rows)
    one, two = random.integers(1, 3, (2, rows))
    x[np.arange(rows), first], x[np.arange(rows), second] = one, two
    return split(torch.tensor(x), torch.tensor(2 * (one - 1) + two - 1), seed=233)


@cache
def prose(window: int = 24) -> Split:
    """Text about three data sets: windows, and the next letter at each place."""
    text = np.concatenate([_letters(name) for name in ("wine", "digits", "linnerud")])
    starts = np.arange(0, len(text) - window - 1, 3)
    rows = torch.tensor(text[starts[:, None] + np.arange(window + 1)])
    return split(rows[:, :-1], rows[:, 1:], seed=234)


@cache
def progressions(rows: int = 3000, length: int = 9, tokens: int = 11) -> Split:
    """Each token is larger than the one before by a step of the row's own (modulo 11); 1 to 11."""
    random = np.random.default_rng(235)
    first, step = random.integers(0, tokens, (rows, 1)), random.integers(1, 4, (rows, 1))
    x = 1 + (first + step * np.arange(length)) % tokens
    return split(torch.tensor(x), torch.tensor(x), seed=235)


@cache
def marked(rows: int = 2400, length: int = 10, tokens: int = 9) -> Split:
    """Rows of tokens: which is the largest of the first half, and is it again in the second?"""
    random = np.random.default_rng(236)
    x = random.integers(1, tokens, (rows, length))
    most = x[:, : length // 2].max(1, keepdims=True)
    return split(torch.tensor(x), torch.tensor((x[:, length // 2 :] == most).any(1).astype(int)), seed=236)


@cache
def tones(rows: int = 2000, length: int = 48) -> Split:
    """Is a tone's wave round, square, sawn or pointed? Any pitch and place, in noise."""
    random = np.random.default_rng(237)
    label = random.integers(0, 4, rows)
    turns = random.uniform(2, 5, (rows, 1)) * np.arange(length) / length + random.random((rows, 1))
    part = turns % 1
    waves = np.stack([1.3 * np.sin(2 * np.pi * part), np.sign(part - 0.5), 3.4 * part - 1.7,
                      1.7 * (4 * np.abs(part - 0.5) - 1)])  # fmt: skip
    x = waves[label, np.arange(rows)] + 0.35 * random.normal(size=(rows, length))
    return split(floats(x)[:, None], torch.tensor(label), seed=237)


@cache
def sensors(rows: int = 1800, length: int = 30) -> Split:
    """Four sensors; a jolt in the first, a shift of the second, a hum of the third: which happened?"""
    random = np.random.default_rng(238)
    x, y = random.normal(size=(rows, length, 4)), random.random((rows, 3)) < [0.5, 0.3, 0.2]
    at, time = random.integers(5, 22, (rows, 3)), np.arange(length)
    x[..., 0] += 4 * y[:, :1] * (time == at[:, :1])
    x[..., 1] += 1.5 * y[:, 1:2] * (time >= at[:, 1:2])
    x[..., 2] += 1.8 * y[:, 2:] * np.sin(1.6 * time) * (np.abs(time - at[:, 2:]) < 6)
    return split(floats(x), floats(y), seed=238)


@cache
def bags(rows: int = 2400, words: int = 300, topics: int = 6) -> Split:
    """Twenty words, the common ones far more often than the rare: about what?"""
    random = np.random.default_rng(239)
    common = 1.0 / np.arange(1, words + 1)
    of_topic = common * random.gamma(0.4, size=(topics, words))
    label = random.integers(0, topics, rows)
    x = np.stack([random.choice(words, 20, p=0.5 * of_topic[one] / of_topic[one].sum()
                                + 0.5 * common / common.sum()) for one in label])  # fmt: skip
    return split(torch.tensor(x), torch.tensor(label), seed=239)


@cache
def liked(users: int = 80, items: int = 60) -> Split:
    """A user and an item that was taken; popular items are taken more often."""
    random = np.random.default_rng(240)
    fit = random.normal(size=(users, 4)) @ random.normal(size=(4, items)) + random.normal(size=items)
    chance = np.exp(1.2 * fit)
    chance /= chance.sum(1, keepdims=True)
    u = random.integers(0, users, 6000)
    i = np.array([random.choice(items, p=chance[one]) for one in u])
    return split(torch.tensor(np.stack([u, i], 1)), torch.tensor(i), seed=240)


@cache
def shops(users: int = 70, shops: int = 45) -> Split:
    """Stars from 1 to 5 by who gave them and to which shop; most shops have few."""
    random = np.random.default_rng(241)
    popular = 1.0 / np.arange(1, shops + 1) ** 0.8
    u, s = random.integers(0, users, 5000), random.choice(shops, 5000, p=popular / popular.sum())
    left, right = random.normal(size=(users, 3)), random.normal(size=(shops, 3))
    stars = 3 + random.normal(size=users)[u] * 0.5 + 0.6 * random.normal(size=shops)[s]
    stars = stars + 0.5 * (left[u] * right[s]).sum(1) + 0.3 * random.normal(size=5000)
    return split(torch.tensor(np.stack([u, s], 1)), floats(np.clip(np.round(stars), 1, 5) - 3)[:, None],
                 seed=241)  # fmt: skip


@cache
def graphs(rows: int = 1500, nodes: int = 12) -> Split:
    """Who is tied to whom in a small group: by chance, in a ring, or around a few?"""
    random = np.random.default_rng(242)
    label, ties = random.integers(0, 3, rows), np.zeros((rows, nodes, nodes))
    for tie, kind in zip(ties, label, strict=True):
        for node in range(nodes):
            if kind == 0:
                tie[node, random.choice(nodes, 2)] = 1
            elif kind == 1:
                tie[node, [(node + 1) % nodes, (node + 2) % nodes if random.random() < 0.8
                           else random.integers(nodes)]] = 1  # fmt: skip
            else:
                tie[node, random.choice(max(1, nodes // 3), 2)] = 1
        mixed = random.permutation(nodes)
        tie[:] = np.maximum(tie, tie.T)[mixed][:, mixed] * (1 - np.eye(nodes))
    return split(floats(ties), torch.tensor(label), seed=242)
