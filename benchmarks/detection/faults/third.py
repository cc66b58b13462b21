"""Faults that were declared with the third held-out set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.parts import change_inputs, module, put_behind, under, under_or_behind
from benchmarks.detection.faults.sagemaker import THROWN_OFF
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

TOO_SLOW = ("learning_rate_scale", "weight_update_ratio", "unchanged_tensor")
COLLAPSED = ("representation_collapse", "constant_output", "tensor_variance", "all_zero")


def labels_one_two() -> Fault:
    """Yes and no numbered as 1 and 2, where the loss expects 0 and 1."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0], recipe.train[1] + 1)

    return Fault("labels_one_two", change, ("labels_out_of_range", *WRONG_OUTPUT), "setup")


def softmax_of_one(head: str) -> Fault:
    """A softmax over the only column there is: always 1."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Softmax(dim=1))
        recipe.criterion = nn.BCELoss()

    return Fault("softmax_of_one", change, (*WRONG_OUTPUT, "constant_output"), "setup")


def summed_loss() -> Fault:
    """The loss is added up over the batch, and the learning rate is the one for its mean."""

    def change(recipe: Recipe) -> None:
        recipe.criterion = type(recipe.criterion)(reduction="sum")

    return Fault("summed_loss", change, THROWN_OFF, "setup")


def shrunk_inputs(factor: float = 1e-4) -> Fault:
    """Inputs that were divided by their range twice over."""

    def change(recipe: Recipe) -> None:
        change_inputs(recipe, lambda x: x * factor)

    rules = ("inputs_not_normalised", "constant_inputs", "constant_output", "loss_not_decreasing")
    return Fault("shrunk_inputs", change, rules, "setup", causes=rules[:2])


def clipped_before_unscaling(rate: float = 0.05) -> Fault:
    """Gradients are clipped while they are still scaled: hardly anything of them is left."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate)
        recipe.schedule, recipe.clip = None, None
        recipe.scaler = {"init_scale": 2.0**20, "growth_interval": 10000}

        def clip(_: int) -> bool:
            nn.utils.clip_grad_norm_(recipe.model.parameters(), 1.0)
            return True

        recipe.steps_optimizer = clip

    causes = (*TOO_SLOW, "vanishing_gradient")
    return Fault("clipped_before_unscaling", change, (*causes, "loss_not_decreasing"), "setup", causes=causes)


def warm_up_for_ever(steps: float = 2e6) -> Fault:
    """A warm-up that was counted in samples: the learning rate stays at nearly nothing."""

    def change(recipe: Recipe) -> None:
        recipe.schedule = lambda step: (step + 1) / steps

    return Fault("warm_up_for_ever", change, (*TOO_SLOW, "loss_not_decreasing", "frozen_schedule"), "setup",
                 causes=(*TOO_SLOW, "frozen_schedule"))  # fmt: skip


def epsilon_large(rate: float = 3e-3, epsilon: float = 1e3) -> Fault:
    """Adam's epsilon so large that nothing is left of its steps."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.Adam(p, rate, eps=epsilon)
        recipe.schedule = None

    return Fault("epsilon_large", change, (*TOO_SLOW, "loss_not_decreasing"), "setup", causes=TOO_SLOW)


def discarded_batches() -> Fault:
    """Gradients are set to zero before each of the batches that are to be added up."""

    def change(recipe: Recipe) -> None:
        def clear(recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
            recipe.made_optimizer.zero_grad()
            return x, y

        recipe.on_batch.append(clear)

    rules = ("stale_gradients", "parameters_without_gradient", "skipped_steps")
    return Fault("discarded_batches", change, rules, "silent", by_construction=True)


def sorted_by_class() -> Fault:
    """Rows as they came from the file: one class after the other."""

    def change(recipe: Recipe) -> None:
        order, given = recipe.train[1].flatten().argsort(stable=True), [0]

        def following(rows: torch.Tensor) -> torch.Tensor:
            chosen = order[torch.arange(given[0], given[0] + len(rows)) % len(order)]
            given[0] += len(rows)
            return chosen

        recipe.batches = following

    rules = ("unshuffled_epochs", "batches_repeated", "class_imbalance", "loss_oscillating", "diverging_loss")
    return Fault("sorted_by_class", change, rules, "setup")


def saturated_units(layer: str, trigger: int = 60) -> Fault:
    """Biases of a layer pushed so far up that what is behind it always gives its largest answer."""

    def change(recipe: Recipe) -> None:
        def push(recipe: Recipe, step: int) -> None:
            if step == trigger:
                with torch.no_grad():
                    module(recipe, layer).bias.fill_(60.0)

        recipe.before_step.append(push)

    rules = ("saturated_activation", "saturated_units", "dead_units", "constant_output")
    return Fault("saturated_units", change, rules, "sagemaker", trigger,
                 under_or_behind(layer, "act|tanh"))  # fmt: skip


def heavy_divergence(weight: float = 60.0) -> Fault:
    """The code is held so near to its prior that it tells nothing of the picture."""

    def change(recipe: Recipe) -> None:
        recipe.criterion.weight = weight

    return Fault("heavy_divergence", change, COLLAPSED, "setup")


def attention_flat(sharpness: float = 1e-4) -> Fault:
    """Scores divided by far too much: every place looks everywhere alike."""

    def change(recipe: Recipe) -> None:
        for block in recipe.model.blocks:
            block.sharpness = sharpness

    rules = ("attention_collapse", "attention_collapsed")
    return Fault("attention_flat", change, rules, "setup", where=r"blocks[./]\d+|attn|softmax")


def empty_weights(layer: str) -> Fault:
    """Weights that were never filled: what was in the memory."""

    def change(recipe: Recipe) -> None:
        weight = module(recipe, layer).weight
        random = torch.Generator().manual_seed(6)
        with torch.no_grad():
            powers = torch.randint(-38, 30, weight.shape, generator=random)
            weight.copy_(torch.tensor(10.0) ** powers)
        recipe.steps = min(recipe.steps, 80)

    rules = ("uninitialised_values", "exploding_tensor", "poor_weight_initialization")
    return Fault("empty_weights", change, rules, "silent", where=under(layer),
                 by_construction=True)  # fmt: skip


def all_as_they_come() -> Fault:
    """No sampler that evens the classes out: the rare one is hardly ever seen."""

    def change(recipe: Recipe) -> None:
        recipe.batches = lambda rows: rows
        x, y = recipe.train
        keep = (y == 0) | (torch.cumsum(y, 0) <= 5)
        recipe.train = (x[keep], y[keep])

    return Fault("all_as_they_come", change, ("class_imbalance", "confusion"), "sagemaker")
