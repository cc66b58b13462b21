"""Finding and replacing the parts of a recipe and of its model that a fault changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.detection.recipe import Recipe

__all__ = [
    "Wrapped", "change_inputs", "module", "multiply_rate", "put_behind", "replace", "swap", "under",
    "under_or_behind", "wrap_from_step",
]  # fmt: skip


def module(recipe: Recipe, name: str) -> nn.Module:
    """A part of the model by its path."""
    return recipe.model.get_submodule(name)


def replace(model: nn.Module, name: str, new: nn.Module) -> None:
    """Put another module in the place of one."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, new)


def swap(model: nn.Module, old: type[nn.Module], make: Callable[[], nn.Module]) -> None:
    """Replace every module of a type."""
    for name, one in list(model.named_modules()):
        if isinstance(one, old):
            replace(model, name, make())


class Wrapped(nn.Module):
    """A module with something done to its output."""

    def __init__(self, inner: nn.Module, then: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.inner, self.then = inner, then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.inner(x))


def put_behind(recipe: Recipe, name: str, new: nn.Module) -> None:
    """Put a module behind a part of the model."""
    replace(recipe.model, name, nn.Sequential(module(recipe, name), new))


def wrap_from_step(
    recipe: Recipe, name: str, first: int, then: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Do something to the output of a part of the model from a step on."""
    on = False

    def look(_: Recipe, step: int) -> None:
        nonlocal on
        on = step >= first

    replace(recipe.model, name, Wrapped(module(recipe, name), lambda x: then(x) if on else x))
    recipe.before_step.append(look)


def change_inputs(recipe: Recipe, how: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Change the inputs of the train rows, then those of the held-out rows."""
    recipe.train = (how(recipe.train[0]), recipe.train[1])
    recipe.held = (how(recipe.held[0]), recipe.held[1])


def multiply_rate(recipe: Recipe, factor: float) -> None:
    """Multiply the learning rates of the optimizer that was made."""
    for group in recipe.made_optimizer.param_groups:
        group["lr"] *= factor


def under(layer: str) -> str:
    """Regular expression for the tensors and modules of a layer."""
    return rf"(^|[/.]){re.escape(layer)}\b"


def under_or_behind(layer: str, activation: str) -> str:
    """The same for a layer and what is behind it: the next of a sequence, or by the names it may have."""
    parent, _, last = layer.rpartition(".")
    after = str(int(last) + 1) if last.isdigit() else activation
    return rf"(^|[/.]){re.escape(parent + '.' if parent else '')}({re.escape(last)}|{after})\b"
