"""What is learnt in other ways in the fifth set: words heard, spectra, tracks, shares and curves."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["incomes", "keywords", "spectra", "tracks", "waves_damped"]


@cache
def keywords(rows: int = 1500, bands: int = 16, frames: int = 24) -> Split:
    """Which of six words was said? Loudness of bands by time: (N, bands, frames)."""
    random = np.random.default_rng(331)
    at = random.uniform(1, bands - 2, (6, 4, 2))
    x, y = np.zeros((rows, bands, frames)), random.integers(0, 6, rows)
    band = np.arange(bands)[:, None]
    for heard, kind in zip(x, y, strict=True):
        begun, long = random.uniform(0, 6), random.uniform(13, 18)
        t = np.clip((np.arange(frames) - begun) / long, 0, 1)
        said = (t > 0) & (t < 1)
        for tone in range(2):
            middle = np.interp(t, np.linspace(0, 1, 4), at[kind, :, tone]) + 0.7 * random.normal()
            heard[:] += said * np.exp(-0.5 * ((band - middle) / 1.1) ** 2) * random.uniform(0.6, 1.3)
        heard[:] += 0.25 * random.normal(size=heard.shape)
    return split(floats((x - x.mean()) / x.std()), torch.tensor(y), seed=331)


@cache
def spectra(rows: int = 1500, length: int = 96) -> Split:
    """How much of three substances is in a sample, by its spectrum over a wandering ground: (N, 1, L)."""
    random = np.random.default_rng(332)
    place = np.arange(length)
    peaks = random.uniform(8, length - 8, (3, 4))
    high = random.uniform(0.3, 1, (3, 4))
    pure = (high[..., None] * np.exp(-0.5 * ((place - peaks[..., None]) / 2.5) ** 2)).sum(1)
    much = random.dirichlet([1, 1, 1], rows) * random.uniform(0.5, 1.5, (rows, 1))
    ground = random.normal(size=(rows, 1)) + random.normal(size=(rows, 1)) * (place / length) ** 2
    x = much @ pure + 0.3 * ground + 0.03 * random.normal(size=(rows, length))
    y = (much - much.mean(0)) / much.std(0)
    return split(floats(((x - x.mean()) / x.std())[:, None]), floats(y), seed=332)


@cache
def tracks(rows: int = 1600, length: int = 16) -> Split:
    """Where something on wheels was, seen from where it is, and where it will be in four steps."""
    random = np.random.default_rng(333)
    x, y = np.zeros((rows, length, 2)), np.zeros((rows, 2))
    for seen, then in zip(x, y, strict=True):
        speed, angle, turn = random.uniform(0.5, 1.5), random.uniform(0, 2 * np.pi), 0.25 * random.normal()
        place, path = np.zeros(2), []
        for _ in range(length + 4):
            turn = 0.95 * turn + 0.03 * random.normal()
            speed = np.clip(speed + 0.04 * random.normal(), 0.3, 1.8)
            angle += turn
            place = place + speed * np.array([np.cos(angle), np.sin(angle)])
            path.append(place)
        found = np.array(path) - path[length - 1]
        seen[:] = found[:length] + 0.05 * random.normal(size=(length, 2))
        then[:] = found[-1]
    return split(floats(x / 8), floats(y / 3), seed=333)


@cache
def waves_damped(rows: int = 2000, length: int = 16) -> torch.Tensor:
    """Short damped waves, each with a pace and phase of its own; nothing is told of them."""
    random = np.random.default_rng(334)
    t, phase = np.linspace(0, 1, length), random.uniform(0, 2 * np.pi, (rows, 1))
    x = np.sin(2 * np.pi * random.uniform(1, 1.8, (rows, 1)) * t + phase)
    x = x * np.exp(-random.uniform(0, 1.2, (rows, 1)) * t)
    return floats(x + 0.03 * random.normal(size=x.shape))


@cache
def incomes(rows: int = 2400) -> torch.Tensor:
    """Six columns of a table: age, years at school, hours, income, rent and savings (standardised)."""
    random = np.random.default_rng(335)
    age, school = random.gamma(9, 5, rows), random.choice([9, 12, 16], rows, p=[0.4, 0.4, 0.2])
    hours = np.where(random.random(rows) < 0.25, 20, 40) + 3 * random.normal(size=rows)
    income = np.exp(0.07 * school + 0.01 * age) * hours * np.exp(0.2 * random.normal(size=rows))
    rent = 0.3 * income**0.8 * np.exp(0.15 * random.normal(size=rows))
    saved = np.log1p(np.clip(income - 2 * rent, 0, None)) * age / 40
    x = np.stack(
        [age, school + 0.5 * random.normal(size=rows), hours, np.log(income), np.log(rent), saved], 1
    )
    return floats((x - x.mean(0)) / x.std(0))
