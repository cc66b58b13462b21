"""A crossroads with two lights, and rows to forge, of the eighth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats

__all__ = ["KEPT", "LONG", "began", "outlines", "passed", "seen", "transitions", "waits", "walkers"]

LONG = 24
"""Moments of a day at the crossroads."""
KEPT = 0.9
"""What a moment later counts."""


def began(count: int, source: torch.Generator) -> torch.Tensor:
    """Cars on both roads, how many more come on each (0 to 1), and which road has a green light: (N, 5)."""
    start = torch.rand(count, 5, generator=source)
    cars, come = (6 * start[:, :2]).floor(), 0.1 + 0.4 * start[:, 2:4]
    return torch.cat([cars, come, (start[:, 4:] > 0.5).float()], 1)


def seen(state: torch.Tensor) -> torch.Tensor:
    """What is known of it, about as large as 1: (N, 5)."""
    return torch.cat([state[:, :2] / 4 - 0.7, 4 * (state[:, 2:4] - 0.3), 2 * state[:, 4:] - 1], 1)


def passed(
    state: torch.Tensor, green: torch.Tensor, source: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """The next moment and what it is worth: less, the more cars wait. Few pass where the lights turn."""
    cars, come = state[:, :2], state[:, 2:4]
    came = (torch.rand(len(state), 2, generator=source) < come).float()
    goes = torch.where(green == state[:, 4], 1.5, 0.3)[:, None]
    cars = (cars + came - goes * torch.stack([1 - green, green], 1)).clamp(0, 10)
    return torch.cat([cars, come, green[:, None]], 1), 0.05 * (6 - cars.sum(1))


def waits(model: torch.nn.Module, days: int = 200) -> float:
    """What a day is worth on average, when the better of two answers is always taken."""
    source = torch.Generator().manual_seed(7)
    state, total = began(days, source), torch.zeros(days)
    with torch.no_grad():
        for _ in range(LONG):
            state, worth = passed(state, model(seen(state))[:, :2].argmax(1).float(), source)
            total += worth
    return float(total.mean())


@cache
def transitions(seed: int, rows: int = 6000, after: int = 40) -> Split:
    """Moments before and after side by side, and the worth of the cars, by a rule for the lights.

    Held out: moments, and what all that followed was worth on average over 24 futures.
    """
    source = torch.Generator().manual_seed(seed)

    def ruled(state: torch.Tensor) -> torch.Tensor:  # they turn when the other road is longer by two
        longer = state[:, 1] - state[:, 0] + 4 * (state[:, 4] - 0.5)
        return (longer > 0).float()

    state = began(rows, source)
    for _ in range(6):
        state = passed(state, ruled(state), source)[0]
    then, worth = passed(state, ruled(state), source)
    train = torch.cat([seen(state), seen(then)], 1), worth[:, None] - 0.3
    held = state[:600]
    now, total = held.repeat(24, 1), torch.zeros(24 * len(held))
    for at in range(after):
        now, worth = passed(now, ruled(now), source)
        total += KEPT**at * (worth - 0.3)
    return train, (seen(held), total.reshape(24, -1).mean(0)[:, None])


@cache
def outlines(points: int, seed: int, rows: int = 2400) -> torch.Tensor:
    """How far the rim of a leaf is from its stalk in some directions: lobes of a number and a depth."""
    random = np.random.default_rng(seed)
    turn = 2 * np.pi * np.arange(points) / points
    lobes, deep = random.integers(2, 4, (rows, 1)), random.uniform(0.1, 0.4, (rows, 1))
    long, bent = random.normal(0, 0.25, (2, rows, 1))
    x = 1 + deep * np.cos(lobes * turn) + long * np.cos(turn) + bent * np.sin(turn) * np.cos(turn)
    x = x * np.exp(0.15 * random.normal(size=(rows, 1))) + 0.03 * random.normal(size=(rows, points))
    return floats((x - x.mean(0)) / x.std(0))


@cache
def walkers(joints: int, seed: int, rows: int = 2400) -> torch.Tensor:
    """Angles of joints at a moment of a step, and a little later, of slow and quick walkers."""
    random = np.random.default_rng(seed)
    phase, quick = random.uniform(0, 2 * np.pi, (rows, 1)), random.choice([0.5, 1.2], (rows, 1))
    lag, swing = random.uniform(0, 2, joints), random.uniform(0.5, 1.5, joints)
    x = [swing * (0.5 + quick) * np.sin(phase + one * quick - lag) for one in (0.0, 1.0)]
    values = np.concatenate(x, 1) + 0.05 * random.normal(size=(rows, 2 * joints))
    return floats(values / values.std(0))
