"""Harmless ways of training that the earlier sets do not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.detection.recipe import Recipe

__all__ = [
    "adafactor", "always_clipped", "held_up", "lookahead", "mixed", "pairwise", "polynomial",
    "ramped", "restarting", "stairs", "strong_decay", "triangles", "twitching", "wsd",
]  # fmt: skip


def ramped(recipe: Recipe) -> None:
    """Up in a line for a tenth of the steps, and down in a line to nothing."""
    steps, up = recipe.steps, recipe.steps // 10
    recipe.schedule = lambda step: min((step + 1) / up, max(0.0, (steps - step) / (steps - up)))


def polynomial(recipe: Recipe) -> None:
    steps = recipe.steps
    recipe.schedule = lambda step: max(0.0, 1 - step / steps) ** 0.9


def triangles(recipe: Recipe) -> None:
    """Up and down between a tenth and all, in forty steps."""
    recipe.schedule = lambda step: 0.1 + 0.9 * (1 - abs((step % 40) / 20 - 1))


def restarting(recipe: Recipe) -> None:
    """Half cosines, each twice as long as the one before."""

    def factor(step: int) -> float:
        length = 20
        while step >= length:
            step, length = step - length, 2 * length
        return 0.01 + 0.99 * 0.5 * (1 + float(torch.cos(torch.tensor(3.14159 * step / length))))

    recipe.schedule, recipe.steps = factor, 140 if recipe.steps < 200 else 300


def stairs(recipe: Recipe) -> None:
    """A fifth of the rate after each third of the steps."""
    third = recipe.steps // 3
    recipe.schedule = lambda step: 0.2 ** (step // third)


def wsd(recipe: Recipe) -> None:
    """A warm-up, the whole rate for long, and quickly down at the end."""
    steps = recipe.steps
    recipe.schedule = lambda step: min((step + 1) / 20, 1.0, max(0.02, (steps - step) / (0.2 * steps)))


def always_clipped(recipe: Recipe) -> None:
    """A clip so low that it holds back every step, as Adam does not mind."""
    recipe.clip = 0.02


def strong_decay(rate: float = 3e-3, decay: float = 1.0) -> Callable[[Recipe], None]:
    """Weights shrink a little all the time."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.AdamW(p, rate, weight_decay=decay)

    return change


def adafactor(rate: float = 2e-2) -> Callable[[Recipe], None]:
    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.Adafactor(p, rate)

    return change


def pairwise(rate: float) -> Callable[[Recipe], None]:
    """Batches of two, and many of them: the loss jumps."""

    def change(recipe: Recipe) -> None:
        recipe.batch, recipe.steps, recipe.save_every, recipe.rate = 2, 360, 3, rate

    return change


def twitching(recipe: Recipe) -> None:
    """Noise on all that is read."""
    recipe.on_batch.append(lambda _recipe, _step, x, y: (x + 0.3 * torch.randn_like(x), y))


def mixed(recipe: Recipe) -> None:
    """Rows and their targets are mixed with others."""

    def mix(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
        share, other = float(torch.distributions.Beta(0.3, 0.3).sample()), torch.randperm(len(x))
        return share * x + (1 - share) * x[other], share * y + (1 - share) * y[other]

    recipe.on_batch.append(mix)


def held_up(recipe: Recipe) -> None:
    """Long after all is learnt, at a rate that goes down to nothing."""
    recipe.steps, recipe.save_every, recipe.eval_every = 3 * recipe.steps, 5, 80
    steps = recipe.steps
    recipe.schedule = lambda step: (1 - step / steps) ** 2


def lookahead(recipe: Recipe) -> None:
    """Every fifth step the weights go half of the way back to where they were five steps before."""
    slow: dict[str, torch.Tensor] = {}

    def pull(recipe: Recipe, step: int) -> None:
        if step % 5:
            return
        with torch.no_grad():
            for name, one in recipe.model.named_parameters():
                if name in slow:
                    one.lerp_(slow[name], 0.5)
                slow[name] = one.detach().clone()

    recipe.before_step.append(pull)
