"""Faults that were declared with the tables of the eleventh set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.parts import change_inputs, module, under
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    import torch

    from benchmarks.detection.recipe import Recipe

__all__ = ["counts_not_logarithms", "few_rows_each", "head_frozen", "spread_of_nothing", "zeroed_each_epoch"]


def zeroed_each_epoch() -> Fault:
    """Gradients are set to zero where an epoch begins, not where a batch does: within one they add up."""

    def change(recipe: Recipe) -> None:
        recipe.zero_grad = False
        epoch = len(recipe.train[0]) // recipe.batch

        def clear(recipe: Recipe, step: int) -> None:
            if step % epoch == 0:
                recipe.made_optimizer.zero_grad()

        recipe.before_step.append(clear)

    return Fault("zeroed_each_epoch", change, ("stale_gradients",), "silent", 1, by_construction=True)


def spread_of_nothing(column: int = 0) -> Fault:
    """A column that never changes is divided by its spread, which is zero: it is no number in any row."""

    def change(recipe: Recipe) -> None:
        def scaled(x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[:, column] = 3.0
            x[:, column] = (x[:, column] - 3.0) / x[:, column].std()
            return x

        change_inputs(recipe, scaled)
        recipe.steps = min(recipe.steps, 80)

    return Fault("spread_of_nothing", change, ("exploding_tensor",), "sagemaker")


def counts_not_logarithms() -> Fault:
    """The loss for counts is told that it is given means, and is given their logarithms, also below zero."""

    def change(recipe: Recipe) -> None:
        recipe.criterion = nn.PoissonNLLLoss(log_input=False)
        recipe.steps = min(recipe.steps, 100)

    return Fault("counts_not_logarithms", change, (*WRONG_OUTPUT, "exploding_tensor"), "setup")


def head_frozen(head: str) -> Fault:
    """What was taught before is frozen once the new head is on, and the head with it."""

    def change(recipe: Recipe) -> None:
        module(recipe, head).requires_grad_(False)

    rules = ("parameters_without_gradient", "parameters_without_optimizer", "unchanged_tensor")
    return Fault("head_frozen", change, rules, "silent", 0, under(head), by_construction=True)


def few_rows_each(share: float = 0.004) -> Fault:
    """The share of rows that each tree sees is divided by a hundred once more: too few for a branch."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"subsample": share}

    return Fault("few_rows_each", change, ("loss_not_decreasing", "constant_output"), "sagemaker")
