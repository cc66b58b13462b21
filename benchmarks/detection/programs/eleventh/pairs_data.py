"""Recipes, meals, doses and machines of the eleventh set: who likes what, and what follows from what."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, split

__all__ = ["KEPT", "doses", "earned", "machines", "meals", "recipes"]

KEPT = 0.9
"""What the next hour of a machine counts."""


@cache
def recipes(seed: int, ones: int, things: int, rows: int = 9000) -> Split:
    """Somebody and a recipe (numbered through), and whether it was cooked (N x 1)."""
    random = np.random.default_rng(seed)
    taste, kind = random.normal(size=(ones, 3)), random.normal(size=(things, 3))
    liked, hungry = 0.7 * random.normal(size=things), 0.5 * random.normal(size=ones)
    one, thing = random.integers(0, ones, rows), random.integers(0, things, rows)
    score = 1.2 * (taste[one] * kind[thing]).sum(1) + liked[thing] + hungry[one]
    cooked = random.random(rows) < 1 / (1 + np.exp(-1.5 * score))
    return split(torch.tensor(np.stack([one, ones + thing], 1)), floats(cooked)[:, None], seed=seed)


@cache
def meals(seed: int, things: int, rows: int = 8000, known: int = 8) -> Split:
    """What somebody ate last, (N, known), and next."""
    random = np.random.default_rng(seed)
    kind = random.normal(size=(things, 4))
    score = 1.5 * random.normal(size=(rows, 4)) @ kind.T + 0.5 * random.normal(size=things)
    eaten = (score[:, None] + random.gumbel(size=(rows, known + 1, things))).argmax(2)
    return split(torch.tensor(eaten[:, :-1]), torch.tensor(eaten[:, -1]), seed=seed)


@cache
def doses(seed: int, rows: int = 4000, numbers: int = 8) -> Split:
    """What is known of somebody, and the two doses that would help most, of a spread of about one."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, numbers))
    first, second = random.normal(size=(2, numbers, 2)) / numbers**0.5
    return split(floats(x), floats(np.tanh(1.5 * x @ first) + 0.7 * np.maximum(0, x @ second)), seed=seed)


def earned(given: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    """How much doses help: up to 1 where they are the best, and less the farther they are from them."""
    return 1 - (given - best).square().sum(1)


def _worn(random: np.random.Generator, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What an hour of a machine is worth, and its warmth, wear and load after it (... x 3)."""
    warm, wear, load = np.moveaxis(state, -1, 0)
    worth = np.tanh(load) + 0.5 - 0.4 * warm**2 - np.maximum(0, wear) * (load > 0)
    after = np.stack(
        [0.8 * warm + 0.3 * np.tanh(load), 0.9 * wear + 0.2 * np.maximum(0, warm), 0.85 * load], -1
    )
    return worth, after + random.normal(size=state.shape) * [0.25, 0.2, 0.5]


@cache
def machines(seed: int, rows: int = 5000, held: int = 600, lives: int = 60, hours: int = 45) -> Split:
    """Hours with what they were worth and what followed; and states with what all that follows is worth."""
    random = np.random.default_rng(seed)
    state = random.normal(size=(rows + held, 3)) * [0.8, 0.6, 1.0]
    worth, after = _worn(random, state[:rows])
    now, total = np.repeat(state[rows:, None], lives, 1), 0.0
    for hour in range(hours):
        gain, now = _worn(random, now)
        total = total + KEPT**hour * gain.mean(1)
    train = floats(np.concatenate([state[:rows], after], 1)), floats(worth)[:, None]
    return train, (floats(state[rows:]), floats(total)[:, None])
