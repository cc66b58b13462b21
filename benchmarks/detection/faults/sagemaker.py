"""Faults that SageMaker Debugger's rules are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.parts import (
    change_inputs,
    module,
    multiply_rate,
    replace,
    swap,
    under,
    under_or_behind,
    wrap_from_step,
)
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

TOO_FAST = ("learning_rate_scale", "learning_rate_too_high", "loss_diverging", "loss_oscillating")
LOST = ("exploding_tensor", "loss_diverging", "loss_not_decreasing", *TOO_FAST)
THROWN_OFF = (*TOO_FAST, *LOST, "weight_update_ratio", "dead_relu", "dead_units", "saturated_activation")
"""What steps that are much too large leave behind."""
DEAD = ("dead_relu", "dead_units", "all_zero")


def dead_units(layer: str, trigger: int = 40) -> Fault:
    """Biases of one layer pushed far down, as one much too large step does."""

    def change(recipe: Recipe) -> None:
        def kill(recipe: Recipe, step: int) -> None:
            if step == trigger:
                with torch.no_grad():
                    module(recipe, layer).bias.fill_(-100.0)

        recipe.before_step.append(kill)

    return Fault("dead_units", change, DEAD, "sagemaker", trigger,
                 under_or_behind(layer, "act|relu"))  # fmt: skip


def deep_sigmoid(depth: int = 8, rate: float | None = None) -> Fault:
    """Dense layers with sigmoids before the first dense layer, so that no gradient comes through."""

    def change(recipe: Recipe) -> None:
        swap(recipe.model, nn.ReLU, nn.Sigmoid)
        name, first = next(
            (name, one) for name, one in recipe.model.named_modules() if isinstance(one, nn.Linear)
        )
        width = first.out_features
        extra = [part for _ in range(depth) for part in (nn.Sigmoid(), nn.Linear(width, width))]
        replace(recipe.model, name, nn.Sequential(first, *extra))
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate or 0.05)
        recipe.steps = max(recipe.steps, 300)

    rules = ("vanishing_gradient", "poor_weight_initialization", "loss_not_decreasing")
    return Fault("deep_sigmoid", change, rules, "sagemaker", causes=rules[:2])


def not_a_number(layer: str, trigger: int = 60) -> Fault:
    """The root of negative numbers behind one layer, from a step on."""

    def change(recipe: Recipe) -> None:
        wrap_from_step(recipe, layer, trigger, lambda x: torch.sqrt(x - 1e6))
        recipe.steps = min(recipe.steps, trigger + 60)

    return Fault("not_a_number", change, ("exploding_tensor",), "sagemaker", trigger, under(layer))


def rate_explodes(rate: float = 1e6) -> Fault:
    """A learning rate that takes the weights beyond all numbers."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate)
        recipe.schedule = None
        recipe.clip = None
        recipe.steps = min(recipe.steps, 120)

    causes = ("exploding_tensor", *TOO_FAST, "weight_update_ratio")
    return Fault(
        "rate_explodes", change, (*causes, "loss_not_decreasing", "dead_relu"), "sagemaker", causes=causes
    )


def rate_kills(rate: float) -> Fault:
    """Plain SGD at a rate that kills rectifiers within a few steps."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate)
        recipe.schedule = recipe.clip = None

    causes = ("dead_relu", "dead_units", "weight_update_ratio", *LOST)
    return Fault("rate_kills", change, causes, "sagemaker")


def weights_scaled(factor: float, name: str) -> Fault:
    """Initial weights of all layers so much larger or smaller."""

    def change(recipe: Recipe) -> None:
        with torch.no_grad():
            for one in recipe.model.parameters():
                if one.ndim > 1:
                    one.mul_(factor)

    causes = (
        "poor_weight_initialization",
        "saturated_activation",
        "vanishing_gradient",
        "symmetric_initialisation",
    )
    rules = (
        *causes,
        "loss_not_decreasing",
        "tensor_variance",
        "dead_relu",
        "constant_output",
        "output_scale",
    )
    return Fault(name, change, rules, "sagemaker", causes=causes)


def tanh_saturated(scale: float = 60.0) -> Fault:
    """Tanh for every rectifier, and weights so large that it always answers 1 or -1."""

    def change(recipe: Recipe) -> None:
        swap(recipe.model, nn.ReLU, nn.Tanh)
        with torch.no_grad():
            for one in recipe.model.modules():
                if isinstance(one, nn.Linear | nn.Conv2d):
                    one.weight.mul_(scale)

    rules = ("saturated_activation", "saturated_units", "dead_units", "poor_weight_initialization")
    return Fault("tanh_saturated", change, rules, "sagemaker")


def rate_tiny(factor: float = 1e-5) -> Fault:
    """A learning rate that moves nothing."""

    def change(recipe: Recipe) -> None:
        recipe.after_optimizer.append(lambda recipe, _: multiply_rate(recipe, factor))

    causes = ("learning_rate_scale", "learning_rate_too_low", "weight_update_ratio", "unchanged_tensor")
    rules = (*causes, "loss_not_decreasing")
    return Fault("rate_tiny", change, rules, "sagemaker", causes=causes)


def output_zero(layer: str, trigger: int = 50) -> Fault:
    """One layer gives zeros from a step on."""

    def change(recipe: Recipe) -> None:
        wrap_from_step(recipe, layer, trigger, lambda x: x * 0.0)

    rules = (
        "all_zero",
        "dead_relu",
        "dead_units",
        "constant_output",
        "vanishing_gradient",
        "gradient_missing",
    )
    return Fault("output_zero", change, rules, "sagemaker", trigger, under(layer))


def unbalanced(share: float = 0.97, main: int = 0) -> Fault:
    """Batches hold nearly only one class (and the score is balanced)."""

    def change(recipe: Recipe) -> None:
        from benchmarks.detection.recipe import balanced_accuracy

        x, y = recipe.train
        random = torch.Generator().manual_seed(1)
        most = torch.nonzero(y == main).flatten()
        rest = torch.nonzero(y != main).flatten()
        count = len(y)
        rare = rest[torch.randperm(len(rest), generator=random)[: max(2, int(count * (1 - share)))]]
        many = most[torch.randint(len(most), (int(count * share),), generator=random)]
        rows = torch.cat([many, rare])
        recipe.train = (x[rows], y[rows])
        recipe.score = balanced_accuracy

    return Fault("unbalanced", change, ("class_imbalance", "confusion"), "sagemaker")


def overfit(rows: int, steps: int = 400, noise: float = 0.0) -> Fault:
    """So few rows to learn from (some told wrongly) that they are learnt by heart."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        x, y = x[:rows], y[:rows].clone()
        if noise:
            random = torch.Generator().manual_seed(3)
            wrong = torch.rand(len(y), generator=random) < noise
            y[wrong] = y[torch.randperm(len(y), generator=random)][wrong]
        recipe.train = (x, y)
        recipe.steps = steps
        recipe.eval_every = 20

    rules = ("overfit", "overtraining")
    return Fault("overfit", change, rules, "sagemaker")


def classes_confused(first: int = 3, second: int = 8) -> Fault:
    """Two classes are labelled by chance as one or the other."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        y = y.clone()
        both = (y == first) | (y == second)
        random = torch.Generator().manual_seed(5)
        y[both] = torch.where(torch.rand(int(both.sum()), generator=random) < 0.5, first, second)
        recipe.train = (x, y)

    return Fault("classes_confused", change, ("confusion", "class_imbalance"), "sagemaker")


def padded(share: float = 0.9) -> Fault:
    """Rows of tokens are cut so short that nearly all of a batch is padding."""

    def change(recipe: Recipe) -> None:
        def cut(x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[:, max(1, int(x.shape[1] * (1 - share))) :] = 0
            return x

        recipe.train = (cut(recipe.train[0]), recipe.train[1])

    return Fault("padded", change, ("nlp_sequence_ratio",), "sagemaker")


def raw_pixels(offset: float = 128.0, scale: float = 64.0) -> Fault:
    """Inputs as they came from the file: 0 to 255."""

    def change(recipe: Recipe) -> None:
        change_inputs(recipe, lambda x: x * scale + offset)

    rules = ("check_input_images", "inputs_not_normalised", "input_not_normalised", "input_scale")
    return Fault("raw_pixels", change, rules, "setup")
