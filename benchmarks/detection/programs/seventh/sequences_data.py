"""Movements, tanks, shops, code and words of the seventh set. Token 0 pads, 1 is rare."""

from __future__ import annotations

import argparse
import inspect
import io
import keyword
import tokenize
from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["SLOTS", "code", "moves", "promoters", "requests", "shops", "tanks", "tickets"]


@cache
def moves(classes: int, channels: int, length: int, seed: int, rows: int = 1600, noise: float = 0.5) -> Split:
    """Which of some exercises? Each a smooth curve, done sooner or later, faster or slower: (N, L, C)."""
    random = np.random.default_rng(seed)
    y, pitch = random.integers(0, classes, rows), np.arange(1, 4)
    part = random.normal(size=(2, classes, 3, channels)) / pitch[:, None]
    t = np.linspace(0, 1, length) ** np.exp(0.2 * random.normal(size=(rows, 1)))
    angle = 2 * np.pi * (t + 0.06 * random.normal(size=(rows, 1)))[..., None] * pitch
    x = np.einsum("nlk,nkc->nlc", np.sin(angle), part[0][y])
    x += np.einsum("nlk,nkc->nlc", np.cos(angle), part[1][y])
    x = x * np.exp(0.2 * random.normal(size=(rows, 1, 1))) + noise * random.normal(size=x.shape)
    return split(floats(x / x.std()), torch.tensor(y), seed=seed)


@cache
def tanks(length: int, seed: int, rows: int = 1400) -> Split:
    """What is pumped into the upper of two tanks, and how high the lower stands: (N, L, 1) each."""
    random = np.random.default_rng(seed)
    pumped = np.repeat(random.uniform(0.1, 1.4, (rows, length // 4 + 20)), 4, 1)[:, : length + 60]
    upper, lower, high = np.ones(rows), np.ones(rows), []
    for flow in pumped.T:
        out = 0.8 * np.sqrt(upper)
        upper = np.clip(upper + 0.3 * (flow - out), 0, 1.6)  # it runs over at 1.6
        lower = np.maximum(lower + 0.3 * (out - 0.8 * np.sqrt(lower)), 0)
        high.append(lower)
    x, y = pumped[:, -length:], np.stack(high, 1)[:, -length:]
    y = (y - y.mean()) / y.std() + 0.05 * random.normal(size=y.shape)
    return split(floats((x - x.mean()) / x.std())[..., None], floats(y)[..., None], seed=seed)


@cache
def shops(weeks: int, ahead: int, seed: int, count: int = 120, *, counts: bool = False) -> Split:
    """A shop's sales by the week beside the year's clock, (N, weeks, 3), and those to come.

    In standardised logarithms, or (`counts`) in things sold; the end of the time is held out.
    """
    random = np.random.default_rng(seed)
    whole = weeks + ahead + 60
    t, season = np.arange(whole), 2 * np.pi * np.arange(whole) / 26
    size, lift = random.normal(1.5, 0.5, (count, 1)), random.uniform(0.2, 0.8, (count, 1))
    trend = 0.012 * random.normal(size=(count, 1)) * t
    drift = np.cumsum(0.08 * random.normal(size=(count, whole)), 1)
    sold = random.poisson(np.exp(size + trend + lift * np.sin(season) + np.clip(drift, -1, 1)))
    seen = np.log1p(sold)
    seen = (seen - seen.mean()) / seen.std()
    clock = np.broadcast_to(np.stack([np.sin(season), np.cos(season)], 1), (count, whole, 2))
    every = np.concatenate([seen[..., None], clock], 2)
    parts = []
    for begins in (range(0, 40, 2), range(48, 60, 3)):
        x = np.concatenate([every[:, at : at + weeks] for at in begins])
        told = sold if counts else seen
        y = np.concatenate([told[:, at + weeks : at + weeks + ahead] for at in begins])
        parts.append((floats(x), floats(y)))
    return parts[0], parts[1]


def _colour(kind: int, text: str) -> int:
    if kind == tokenize.NAME:
        return 1 + keyword.iskeyword(text)
    return {tokenize.STRING: 3, tokenize.COMMENT: 4, tokenize.NUMBER: 5, tokenize.OP: 6}.get(kind, 0)


@cache
def code(length: int = 32, step: int = 20, most: int = 48_000) -> Split:
    """Characters of Python's own code, and what an editor colours each as (seven kinds, 0 between).

    The last quarter of the file is held out.
    """
    source = inspect.getsource(argparse)[:most].rpartition("\n\n")[0]
    source = source[: source.rindex("\n\nclass ")] + "\n"
    starts = np.cumsum([0, *(len(line) + 1 for line in source.split("\n"))])
    colour = np.zeros(len(source), np.int64)
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        begin, end = (starts[line - 1] + at for line, at in (one.start, one.end))
        colour[begin:end] = _colour(one.type, one.string)
    x = torch.tensor([min(ord(one), 127) for one in source])
    y = torch.tensor(colour)
    at = torch.arange(0, len(x) - length, step)[:, None] + torch.arange(length)
    cut = int(0.75 * len(at))
    return (x[at[:cut]], y[at[:cut]]), (x[at[cut + 2 :]], y[at[cut + 2 :]])


SLOTS = 6


@cache
def requests(
    seed: int, rows: int = 1500, length: int = 14
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words of requests to a travel desk, the slot that each fills (0: none), and which of four is wanted.

    A town's slot is told by the word before it, a time's by the one behind it.
    """
    random = np.random.default_rng(seed)
    x, slots = np.zeros((2, rows, length), np.int64)
    wanted = random.integers(0, 4, rows)
    for row, slot, kind in zip(x, slots, wanted, strict=True):
        told = [(2 + int(random.integers(6)), 0) for _ in range(random.integers(1, 4))]
        verb = kind if random.random() < 0.9 else random.integers(4)
        told.append((8 + 3 * int(verb) + int(random.integers(3)), 0))
        parts = [
            [(20, 0), (30 + int(random.integers(20)), 1)],
            [(21, 0), (30 + int(random.integers(20)), 2)],
            [(22, 0), (50 + int(random.integers(12)), 3), (23, 0)],
            [(22, 0), (50 + int(random.integers(12)), 4), (24, 0)],
            [(62 + int(random.integers(8)), 5)],
        ]
        for part in random.permutation(5)[: random.integers(2, 5)]:
            told += parts[part]
        told = told[:length]
        row[: len(told)], slot[: len(told)] = zip(*told, strict=True)
    x[(random.random(x.shape) < 0.04) & (x > 0)] = 1
    return torch.tensor(x), torch.tensor(slots), torch.tensor(wanted)


@cache
def tickets(
    queues: int, words: int, length: int, seed: int, rows: int = 1800, clear: float = 0.35,
    *, rare: tuple[int, ...] = (),
) -> Split:  # fmt: skip
    """Words of a ticket, and the queue it belongs to; `rare` queues get a seventh of the others' tickets."""
    random = np.random.default_rng(seed)
    share = np.array([1 / 7 if one in rare else 1.0 for one in range(queues)])
    y = random.choice(queues, rows, p=share / share.sum())
    common, own = random.dirichlet(np.full(words, 0.3)), random.dirichlet(np.full(words, 0.04), queues)
    x = np.zeros((rows, length), np.int64)
    for row, queue in zip(x, y, strict=True):
        end = int(random.integers(length // 2, length + 1))
        row[:end] = 2 + random.choice(words, end, p=clear * own[queue] + (1 - clear) * common)
    x[(random.random(x.shape) < 0.02) & (x > 0)] = 1
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def promoters(length: int, seed: int, rows: int = 2000) -> Split:
    """Letters (1 to 4) in a row, and what is in them: nothing, a box, another, or one and then the other."""
    random = np.random.default_rng(seed)
    x, y = random.integers(1, 5, (rows, length)), random.integers(0, 4, rows)
    boxes = random.integers(1, 5, (2, 7))
    for row, kind in zip(x, y, strict=True):
        middle = length // 2
        for box in range(2):
            if kind in (box + 1, 3):
                at = int(random.integers(0, middle - 7)) + middle * (box if kind == 3 else random.integers(2))
                row[at : at + 7] = np.where(random.random(7) < 0.93, boxes[box], row[at : at + 7])
    return split(torch.tensor(x), torch.tensor(y), seed=seed)
