"""What a practitioner would try instead, in the fifth set: none of it hurts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import nn

from benchmarks.detection.programs.fourth.ways import by
from benchmarks.detection.programs.variants import bf16

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.detection.recipe import Recipe

__all__ = ["batches_of", "bf16", "by", "clipped", "cosine", "dropped", "one_cycle", "stepped", "warm_cosine"]


def batches_of(size: int, lr: float | None = None) -> Callable[[Recipe], None]:
    """Other batches, and a rate that suits them."""

    def change(recipe: Recipe) -> None:
        recipe.batch, recipe.rate = size, lr or recipe.rate

    return change


def warm_cosine(warm: int = 20, least: float = 0.01) -> Callable[[Recipe], None]:
    """Up in a line, and down in half a cosine to a share of the rate."""

    def change(recipe: Recipe) -> None:
        steps = recipe.steps

        def factor(step: int) -> float:
            if step < warm:
                return (step + 1) / warm
            done = min(1.0, (step - warm) / max(1, steps - warm))
            return least + (1 - least) * 0.5 * (1 + math.cos(math.pi * done))

        recipe.schedule = factor

    return change


def cosine(recipe: Recipe) -> None:
    """Down in half a cosine to nothing."""
    steps = recipe.steps
    recipe.schedule = lambda step: 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))


def one_cycle(recipe: Recipe) -> None:
    """From a twenty-fifth up to the rate in three tenths of the steps, and down to nearly nothing."""
    steps = recipe.steps

    def factor(step: int) -> float:
        up = 0.3 * steps
        if step < up:
            return 0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * step / up))
        return 1e-4 + 0.5 * (1 + math.cos(math.pi * min(1.0, (step - up) / (steps - up))))

    recipe.schedule = factor


def stepped(recipe: Recipe) -> None:
    """A third of the rate after six tenths of the steps, and a tenth after nine."""
    steps = recipe.steps
    recipe.schedule = lambda step: 1.0 if step < 0.6 * steps else 0.3 if step < 0.9 * steps else 0.1


def dropped(share: float) -> Callable[[Recipe], None]:
    """Every dropout hides this share."""

    def change(recipe: Recipe) -> None:
        for one in recipe.model.modules():
            if isinstance(one, nn.Dropout):
                one.p = share

    return change


def clipped(norm: float) -> Callable[[Recipe], None]:
    """Gradients are held to a norm."""

    def change(recipe: Recipe) -> None:
        recipe.clip = norm

    return change
