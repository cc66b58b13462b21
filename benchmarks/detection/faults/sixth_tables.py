"""Faults that were declared with the tables and pictures of the sixth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from benchmarks.detection.faults.parts import change_inputs
from benchmarks.detection.faults.sagemaker import LOST, TOO_FAST
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["log_of_nothing", "missing_targets", "rounds_without_end", "swapped_arguments", "tiny_rounds",
           "too_long", "truncated", "weights_upside_down"]  # fmt: skip


def log_of_nothing(column: int = 0, share: float = 0.03) -> Fault:
    """The logarithm of an amount that is zero in some rows: minus infinity."""

    def change(recipe: Recipe) -> None:
        x = recipe.train[0].clone()
        x[torch.rand(len(x), generator=torch.Generator().manual_seed(12)) < share, column] = -torch.inf
        recipe.train = (x, recipe.train[1])
        recipe.steps = min(recipe.steps, 100)

    return Fault("log_of_nothing", change, ("exploding_tensor",), "setup")


def missing_targets(share: float = 0.02) -> Fault:
    """What is to be told was not measured in some rows, and the file holds NaN for it."""

    def change(recipe: Recipe) -> None:
        y = recipe.train[1].clone()
        y[torch.rand(len(y), generator=torch.Generator().manual_seed(13)) < share] = torch.nan
        recipe.train = (recipe.train[0], y)
        recipe.steps = min(recipe.steps, 100)

    return Fault("missing_targets", change, ("exploding_tensor",), "setup")


def truncated() -> Fault:
    """Pixels from 0 to 1 are read into an array of whole numbers: nearly all become 0."""

    def change(recipe: Recipe) -> None:
        def cut(x: torch.Tensor) -> torch.Tensor:
            return ((x - x.amin()) / (x.amax() - x.amin())).floor()

        change_inputs(recipe, cut)

    rules = ("inputs_constant", "all_zero", "check_input_images", "inputs_not_normalised", "constant_output")
    return Fault("truncated", change, rules, "setup", causes=rules[:4])


def swapped_arguments(momentum: float = 0.01) -> Fault:
    """Learning rate and momentum of SGD change places."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, 0.9, momentum=momentum)
        recipe.schedule = recipe.clip = None

    rules = (*TOO_FAST, *LOST, "weight_update_ratio", "dead_relu", "dead_units", "saturated_activation")
    return Fault("swapped_arguments", change, rules, "setup")


def too_long(times: int = 10) -> Fault:
    """Nobody stops it: many times as many steps as help, at a constant rate."""

    def change(recipe: Recipe) -> None:
        recipe.steps *= times
        recipe.schedule = None

    return Fault("too_long", change, ("overtraining", "overfit"), "sagemaker")


def rounds_without_end(times: int) -> Fault:
    """Rounds go on long after they help, at the rate that is usual for few of them."""

    def change(recipe: Recipe) -> None:
        recipe.steps *= times
        recipe.options |= {"eta": 0.5}

    return Fault("rounds_without_end", change, ("overtraining", "overfit"), "sagemaker")


def tiny_rounds(eta: float = 1e-3) -> Fault:
    """A rate for thousands of rounds, and a few dozen of them: hardly anything is learnt."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"eta": eta}

    rules = ("loss_not_decreasing", "learning_rate_scale", "learning_rate_too_low")
    return Fault("tiny_rounds", change, rules, "sagemaker")


def weights_upside_down() -> Fault:
    """Classes weigh by how many there are, not by how few: the rare one counts for nothing."""

    def change(recipe: Recipe) -> None:
        weight = 1 / recipe.criterion.weight
        recipe.criterion.weight.copy_(weight * len(weight) / weight.sum())

    return Fault("weights_upside_down", change, ("class_imbalance", "confusion"), "sagemaker")
