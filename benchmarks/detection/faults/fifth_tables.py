"""Faults that were declared with the tables and pictures of the fifth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.parts import Wrapped, change_inputs, module, put_behind, replace
from benchmarks.detection.faults.sagemaker import LOST
from benchmarks.detection.faults.second import NOT_SCALED
from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = [
    "both_losses", "clamped_output", "divided_twice", "in_raw_units", "l2_in_adam", "missing_values",
    "normal_weights", "only_rectified", "own_logarithm", "raw_columns", "thawed_unseen",
    "times_hundred",
]  # fmt: skip


def missing_values(column: int = 0, share: float = 0.02) -> Fault:
    """Some values of a column were not known, and the file holds NaN for them."""

    def change(recipe: Recipe) -> None:
        source = torch.Generator().manual_seed(9)
        x = recipe.train[0].clone()
        x[torch.rand(len(x), generator=source) < share, column] = float("nan")
        recipe.train = (x, recipe.train[1])
        recipe.steps = min(recipe.steps, 100)

    return Fault("missing_values", change, ("exploding_tensor",), "setup")


def in_raw_units(scale: float = 60_000.0, offset: float = 200_000.0) -> Fault:
    """Targets in the file's own units (a price, not its standard score)."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0], recipe.train[1] * scale + offset)
        recipe.held = (recipe.held[0], recipe.held[1] * scale + offset)

    rules = ("labels_out_of_range", *WRONG_OUTPUT, *LOST, *TOO_SLOW)
    return Fault("in_raw_units", change, rules, "setup")


def raw_columns(low: float = 0.5, high: float = 4.0) -> Fault:
    """Columns in their own units: one lies around 3, another around 10000."""

    def change(recipe: Recipe) -> None:
        width = recipe.train[0].shape[1]
        scale = 10.0 ** torch.linspace(low, high, width)[torch.randperm(width, generator=_source(10))]
        change_inputs(recipe, lambda x: (x + 2) * scale)

    return Fault("raw_columns", change, NOT_SCALED, "setup", causes=NOT_SCALED[:1])


def _source(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def divided_twice() -> Fault:
    """Pixels from 0 to 1 are divided by 255 once more: all pictures are black."""

    def change(recipe: Recipe) -> None:
        change_inputs(recipe, lambda x: (x * 0.25 + 0.5) / 255.0)

    rules = (
        "inputs_not_normalised",
        "check_input_images",
        "constant_inputs",
        "constant_output",
        "loss_not_decreasing",
    )
    return Fault("divided_twice", change, rules, "setup", causes=rules[:3])


def times_hundred() -> Fault:
    """Yes and no as percentages, 0 and 100, where the loss expects 0 and 1."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0], recipe.train[1] * 100.0)

    return Fault("times_hundred", change, ("labels_out_of_range", *WRONG_OUTPUT), "setup")


def normal_weights(spread: float = 1.0) -> Fault:
    """All weights drawn with a spread of one, whatever the layers' widths."""

    def change(recipe: Recipe) -> None:
        for one in recipe.model.modules():
            if isinstance(one, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
                nn.init.normal_(one.weight, std=spread)

    causes = ("poor_weight_initialization", "saturated_activation", "dead_relu", "dead_units")
    rules = (*causes, *LOST, "tensor_variance", "output_scale")
    return Fault("normal_weights", change, rules, "sagemaker", causes=causes)


def l2_in_adam(rate: float, decay: float = 1.0) -> Fault:
    """Decay of AdamW given to Adam, which takes it for a part of the gradient: it outweighs the loss."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.Adam(p, rate, weight_decay=decay)

    rules = ("weight_decay_dominates", "loss_not_decreasing", "vanishing_gradient", "constant_output",
             "all_zero", "representation_collapse", "tensor_variance", "dead_units", "dead_relu")  # fmt: skip
    return Fault("l2_in_adam", change, rules, "setup")


def clamped_output(head: str, low: float, high: float) -> Fault:
    """What is told is kept between bounds that most targets lie beyond, without a gradient there."""

    def change(recipe: Recipe) -> None:
        replace(recipe.model, head, Wrapped(module(recipe, head), lambda told: told.clamp(low, high)))

    rules = (*WRONG_OUTPUT, "output_range", "labels_out_of_range", "constant_output", "dead_units",
             "vanishing_gradient", "saturated_activation")  # fmt: skip
    return Fault("clamped_output", change, rules, "setup")


def only_rectified(head: str) -> Fault:
    """A rectifier behind the last layer of a regression: what is below the mean cannot be told."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.ReLU())

    rules = (*WRONG_OUTPUT, "output_range", "labels_out_of_range", "dead_relu", "constant_output")
    return Fault("only_rectified", change, rules, "setup")


def own_logarithm(sharpness: float = 30.0) -> Fault:
    """A cross-entropy of one's own: the logarithm of a probability that is rounded to nothing."""

    def change(recipe: Recipe) -> None:
        class Own(nn.Module):
            def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                chances = (sharpness * told).softmax(1)
                return -torch.log(chances.gather(1, wanted[:, None])).mean()

        recipe.criterion = Own()
        recipe.steps = min(recipe.steps, 120)

    return Fault("own_logarithm", change, ("exploding_tensor",), "sagemaker")


def thawed_unseen(where: str, trigger: int) -> Fault:
    """A trunk is thawed in mid-run, and the optimizer is never given its weights."""

    def change(recipe: Recipe) -> None:
        recipe.options["joins"] = False

    return Fault("thawed_unseen", change, ("parameters_without_optimizer",), "silent", trigger, where,
                 by_construction=True)  # fmt: skip


def both_losses(head: str) -> Fault:
    """Logarithms of a softmax before a loss for yes and no in each of the classes (one-hot)."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.LogSoftmax(dim=1))
        recipe.criterion = _OneHot()

    return Fault("both_losses", change, WRONG_OUTPUT, "setup")


class _OneHot(nn.Module):
    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        flags = nn.functional.one_hot(wanted, told.shape[1]).to(told.dtype)
        return nn.functional.binary_cross_entropy_with_logits(told, flags)
