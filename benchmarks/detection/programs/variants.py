"""Harmless ways of training that detectors like to take for faults."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.detection.recipe import Recipe

__all__ = [
    "accumulating", "adamw", "bf16", "clipped", "converged", "cosine", "decayed", "noisy", "restarts",
    "scaled", "sgd", "smoothed", "sparsely_recorded", "warm_up",
]  # fmt: skip


def sgd(rate: float = 0.1, momentum: float = 0.9) -> Callable[[Recipe], None]:
    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate, momentum=momentum)

    return change


def adamw(rate: float = 3e-3, decay: float = 0.05) -> Callable[[Recipe], None]:
    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.AdamW(p, rate, weight_decay=decay)

    return change


def decayed(recipe: Recipe) -> None:
    recipe.optimizer = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4)


def warm_up(recipe: Recipe) -> None:
    recipe.schedule = lambda step: min(1.0, (step / 60) ** 2 + 1e-5)
    recipe.steps = max(recipe.steps, 180)


def cosine(recipe: Recipe) -> None:
    steps = recipe.steps
    recipe.schedule = lambda step: (
        min(1.0, (step + 1) / 15) * 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))
    )


def restarts(recipe: Recipe) -> None:
    recipe.schedule = lambda step: 0.5 * (1 + math.cos(math.pi * (step % 60) / 60)) + 1e-4


def clipped(recipe: Recipe) -> None:
    recipe.clip = 1.0


def accumulating(recipe: Recipe) -> None:
    recipe.batch, recipe.accumulate, recipe.steps = max(4, recipe.batch // 4), 4, min(recipe.steps, 150)


def noisy(recipe: Recipe) -> None:
    recipe.batch, recipe.steps = 4, 240
    recipe.optimizer = lambda p: torch.optim.Adam(p, 1e-3)


def converged(recipe: Recipe) -> None:
    recipe.steps, recipe.save_every, recipe.eval_every = 600, 10, 100


def sparsely_recorded(recipe: Recipe) -> None:
    recipe.save_every, recipe.steps = 10, recipe.steps * 2


def smoothed(recipe: Recipe) -> None:
    recipe.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)


def bf16(recipe: Recipe) -> None:
    recipe.autocast = True


def scaled(recipe: Recipe) -> None:
    """A scale that is too large at first, as is usual: the first steps are skipped."""
    recipe.scaler = {"init_scale": 2.0**127, "growth_interval": 50}
