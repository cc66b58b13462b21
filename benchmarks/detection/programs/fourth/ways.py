"""Harmless ways of training that the earlier sets do not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.detection.recipe import Recipe

__all__ = [
    "averaged",
    "by",
    "cooled",
    "cycled",
    "in_double_time",
    "inverse_root",
    "larger_batches",
    "noisy_gradients",
    "on_plateaus",
    "rounded",
    "shaken",
    "small_batches",
    "swa",
]  # fmt: skip


def by(name: str, lr: float, **settings: float) -> Callable[[Recipe], None]:
    """Another optimizer of PyTorch's."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: getattr(torch.optim, name)(p, lr=lr, **settings)
        recipe.rate = None

    return change


def averaged(recipe: Recipe) -> None:
    """An average of the weights follows the training, beside it."""
    mean: dict[str, torch.Tensor] = {}

    def follow(recipe: Recipe, _step: int) -> None:
        with torch.no_grad():
            for name, one in recipe.model.named_parameters():
                mean.setdefault(name, one.detach().clone()).lerp_(one, 0.01)

    recipe.before_step.append(follow)


def swa(recipe: Recipe) -> None:
    """A quarter of the steps at a constant low rate, averaged beside the training (SWA)."""
    steps = recipe.steps
    recipe.schedule = lambda step: max(0.2, 1 - step / (0.75 * steps))
    mean: list[torch.Tensor] = []

    def follow(recipe: Recipe, step: int) -> None:
        if step >= 0.75 * steps:
            found = [one.detach().clone() for one in recipe.model.parameters()]
            mean[:] = (
                found if not mean else [0.9 * old + 0.1 * new for old, new in zip(mean, found, strict=True)]
            )

    recipe.before_step.append(follow)


def on_plateaus(recipe: Recipe) -> None:
    """Half the rate where the mean loss of twenty batches has not fallen."""
    best = [float("inf")]

    def look(recipe: Recipe, step: int) -> None:
        if step % 30 or step < 60:
            return
        loss = sum(one for *_, one in recipe.recent) / len(recipe.recent)
        if loss > 0.99 * best[0]:
            for group in recipe.made_optimizer.param_groups:
                group["lr"] = max(group["lr"] * 0.5, 1e-4)
        best[0] = min(best[0], loss)

    recipe.before_step.append(look)


def cycled(recipe: Recipe) -> None:
    """One cycle: up from a tenth in three tenths of the steps, down to a thousandth."""
    steps = recipe.steps

    def factor(step: int) -> float:
        up = 0.3 * steps
        if step < up:
            return 0.1 + 0.9 * step / up
        return max(1e-3, (1 - (step - up) / (steps - up)) ** 1.5)

    recipe.schedule = factor


def cooled(recipe: Recipe) -> None:
    """The whole rate for six tenths of the steps, and then down in a root."""
    steps = recipe.steps
    recipe.schedule = lambda step: min(
        1.0, 1.01 - ((step / steps - 0.6) / 0.4) ** 0.5 if step > 0.6 * steps else 1
    )


def inverse_root(recipe: Recipe) -> None:
    """Up in twenty-five steps, and down with the root of the step."""
    recipe.schedule = lambda step: min((step + 1) / 25, (25 / (step + 1)) ** 0.5)


def noisy_gradients(recipe: Recipe) -> None:
    """Clipped gradients and noise on them, for the privacy of who is in the data."""
    recipe.clip = 1.0

    def shake(_: int) -> bool:
        for one in recipe.model.parameters():
            if one.grad is not None:
                one.grad.add_(0.003 * torch.randn_like(one))
        return True

    recipe.steps_optimizer = shake


def rounded(recipe: Recipe) -> None:
    """Weights are rounded to eight bits for each gradient (straight through), as for a small device."""
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def round_all(recipe: Recipe, _step: int) -> None:
        with torch.no_grad():
            for one in recipe.model.parameters():
                if one.ndim > 1 and one.requires_grad:
                    kept.append((one, one.detach().clone()))
                    unit = one.abs().amax() / 127 + 1e-12
                    one.copy_((one / unit).round() * unit)

    def put_back(_: int) -> bool:
        with torch.no_grad():
            for one, whole in kept:
                one.copy_(whole)
        kept.clear()
        return True

    recipe.before_step.append(round_all)
    recipe.steps_optimizer = put_back


def small_batches(size: int, steps: int, lr: float | None = None) -> Callable[[Recipe], None]:
    """Few rows a step: the loss jumps."""

    def change(recipe: Recipe) -> None:
        recipe.batch, recipe.steps, recipe.rate = size, steps, lr or recipe.rate

    return change


def larger_batches(factor: int = 4) -> Callable[[Recipe], None]:
    def change(recipe: Recipe) -> None:
        recipe.batch *= factor

    return change


def shaken(share: float = 0.2) -> Callable[[Recipe], None]:
    """Noise on what is read, and some of it hidden."""

    def change(recipe: Recipe) -> None:
        recipe.on_batch.append(
            lambda _recipe, _step, x, y: ((x + share * torch.randn_like(x)) * (torch.rand_like(x) > 0.1), y)
        )

    return change


def in_double_time(recipe: Recipe) -> None:
    """Twice as long, written down every fifth step."""
    recipe.steps, recipe.save_every = 2 * recipe.steps, 5
