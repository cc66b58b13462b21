"""Offers that were logged, and sleds that slid, of the ninth set."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["KEPT", "OFFERS", "earned", "logged", "parked", "slid"]

OFFERS = 5
KEPT = 0.9
"""What a moment later counts."""


@cache
def logged(seed: int, rows: int = 9000, columns: int = 10) -> Split:
    """Who came, and what was offered, how likely that was, what it earned, and what each would earn."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    bent = np.tanh(x @ random.normal(size=(columns, 12)) / 2)
    means = 1 / (1 + np.exp(-1.5 * bent @ random.normal(size=(12, OFFERS)) / 2))
    habit = np.exp(0.5 * x @ random.normal(size=(columns, OFFERS)) / np.sqrt(columns))
    habit /= habit.sum(1, keepdims=True)
    offer = (habit.cumsum(1) < random.random((rows, 1))).sum(1).clip(max=OFFERS - 1)
    each = np.arange(rows)
    paid = random.random(rows) < means[each, offer]
    return split(floats(x), floats(np.column_stack([offer, habit[each, offer], paid, means])), seed=seed)


def earned(told: torch.Tensor, log: torch.Tensor) -> float:
    """What is earned on average where the likeliest offer is made."""
    return float(log[:, 3:].gather(1, told.argmax(1, keepdim=True)).mean())


def _slid(state: torch.Tensor, push: torch.Tensor, source: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Place and speed after a push to the left (0), none (1) or one to the right (2), and its worth."""
    place, speed = state.T
    speed = 0.85 * speed + 0.35 * (push - 1) + 0.03 * torch.randn(len(place), generator=source)
    place = (place + 0.5 * speed).clamp(-3, 3)
    return torch.stack([place, speed], 1), 0.5 - place.abs() - 0.05 * (push - 1).abs()


def _anywhere(count: int, source: torch.Generator) -> torch.Tensor:
    return torch.randn(count, 2, generator=source) * torch.tensor([1.2, 0.6])


@cache
def slid(seed: int, rows: int = 6000) -> tuple[torch.Tensor, torch.Tensor]:
    """Before and after side by side, (N, 4), and which push it was and what it was worth, (N, 2)."""
    source = torch.Generator().manual_seed(seed)
    state = _anywhere(rows, source)
    push = torch.randint(3, (rows,), generator=source).float()
    then, worth = _slid(state, push, source)
    return torch.cat([state, then], 1), torch.stack([push, worth], 1)


def parked(model: torch.nn.Module, moments: int = 20) -> float:
    """What a moment is worth on average, when the best push by a model is always made."""
    source = torch.Generator().manual_seed(9)
    state, total = _anywhere(300, source), 0.0
    with torch.no_grad():
        for _ in range(moments):
            state, worth = _slid(state, model(state).argmax(1).float(), source)
            total += float(worth.mean()) / moments
    return total
