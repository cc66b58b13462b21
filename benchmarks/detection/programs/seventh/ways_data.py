"""A battery and the price of power, and rows to forge, of the seventh set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import nn

from benchmarks.detection.programs.data import floats

__all__ = ["LONG", "began", "ellipses", "loaned", "seen", "sold", "worth"]

LONG = 24
"""Hours of a day."""


def began(count: int, source: torch.Generator) -> torch.Tensor:
    """Days at midnight: how full a battery is (0 to 1), how far the price is from the usual, and the hour."""
    start = torch.rand(count, 3, generator=source)
    return torch.stack([start[:, 0], start[:, 1] - 0.5, torch.zeros(count)], 1)


def seen(state: torch.Tensor) -> torch.Tensor:
    """What is known of it: (N, 4)."""
    turn = state[:, 2:] * 2 * torch.pi / LONG
    return torch.cat([2 * state[:, :1] - 1, 2 * state[:, 1:2], turn.sin(), turn.cos()], 1)


def sold(
    state: torch.Tensor, did: torch.Tensor, source: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """An hour later, and what was earned: power is sold (0), left (1) or bought (2)."""
    full, off, hour = state.T
    price = 0.6 + off - 0.5 * (hour * 2 * torch.pi / LONG).cos()
    moved = torch.minimum(torch.maximum(0.25 * (did - 1.0), -full), 1 - full)
    off = 0.9 * off + 0.1 * torch.randn(len(full), generator=source)
    earned = -price * moved - 0.02 * (did != 1)
    return torch.stack([full + moved, off, hour + 1], 1), 4 * earned


def worth(model: nn.Module, days: int = 200) -> float:
    """What a day earns on average, when the best of three answers is always taken."""
    source = torch.Generator().manual_seed(7)
    state, total = began(days, source), torch.zeros(days)
    with torch.no_grad():
        for _ in range(LONG):
            state, earned = sold(state, model(seen(state))[:, :3].argmax(1), source)
            total += earned
    return float(total.mean())


@cache
def ellipses(rows: int = 2400, points: int = 4) -> torch.Tensor:
    """Four points on an ellipse, a quarter of a turn apart, of any size and tilt: (N, 8)."""
    random = np.random.default_rng(731)
    size, tilt = random.uniform(0.5, 1.5, (2, rows, 1)), random.uniform(0, np.pi, (rows, 1))
    angle = random.uniform(0, 2 * np.pi, (rows, 1)) + np.arange(points) * np.pi / 2
    one, two = size[0] * np.cos(angle), size[1] * np.sin(angle)
    x = np.stack([one * np.cos(tilt) - two * np.sin(tilt), one * np.sin(tilt) + two * np.cos(tilt)], 2)
    return floats(x.reshape(rows, -1) + 0.05 * random.normal(size=(rows, 2 * points)))


@cache
def loaned(rows: int = 2400) -> torch.Tensor:
    """Six columns of loans that hang together: income, sum, years, rate, and two that follow from them."""
    random = np.random.default_rng(732)
    income, years = random.normal(size=rows), random.choice([-1.0, 0.0, 1.0], rows)
    amount = 0.7 * income + 0.5 * years + 0.5 * random.normal(size=rows)
    rate = np.where(amount > 0.5, -0.6, 0.6) - 0.4 * income + 0.3 * random.normal(size=rows)
    due = amount - 0.6 * years + 0.4 * rate + 0.1 * random.normal(size=rows)
    share = np.tanh(due - income) + 0.1 * random.normal(size=rows)
    x = np.stack([income, amount, years + 0.1 * random.normal(size=rows), rate, due, share], 1)
    return floats((x - x.mean(0)) / x.std(0))
