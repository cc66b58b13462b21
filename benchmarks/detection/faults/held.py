"""Faults that were declared with the held-out programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.parts import put_behind
from benchmarks.detection.faults.sagemaker import THROWN_OFF
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

WRONG_OUTPUT = ("output_loss_mismatch", "wrong_loss", "softmax")


def relu_head(head: str) -> Fault:
    """A rectifier behind the last layer of a classifier."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.ReLU())

    return Fault("relu_head", change, (*WRONG_OUTPUT, "dead_relu", "constant_output"), "setup")


def softmax_over_batch(head: str) -> Fault:
    """A softmax over the samples of the batch, before a loss that has its own over the classes."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Softmax(dim=0))

    return Fault("softmax_over_batch", change, (*WRONG_OUTPUT, "constant_output"), "setup")


def broken_rows(share: float = 0.1, trigger: int = 50) -> Fault:
    """Some rows hold NaN from a step on."""

    def change(recipe: Recipe) -> None:
        def spoil(_recipe: Recipe, step: int, x: torch.Tensor, y: torch.Tensor):
            if step >= trigger:
                x = x.clone()
                x[: max(1, int(share * len(x)))] = float("nan")
            return x, y

        recipe.on_batch.append(spoil)
        recipe.steps = min(recipe.steps, trigger + 60)

    return Fault("broken_rows", change, ("exploding_tensor",), "sagemaker", trigger)


def clipped_away(norm: float = 1e-6) -> Fault:
    """Gradients clipped to next to nothing, under plain SGD."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, 0.05)
        recipe.schedule = None
        recipe.clip = norm

    causes = ("learning_rate_scale", "weight_update_ratio", "vanishing_gradient", "unchanged_tensor")
    return Fault("clipped_away", change, (*causes, "loss_not_decreasing"), "setup", causes=causes)


def momentum_wild(rate: float = 0.5) -> Fault:
    """Momentum of 0.99 with a rate that is large without any."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate, momentum=0.99)
        recipe.schedule = recipe.clip = None

    return Fault("momentum_wild", change, THROWN_OFF, "setup")


def rolled_labels() -> Fault:
    """Each row has the label of the row before it."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        recipe.train = (x, y.roll(1, 0)[torch.arange(len(y))])
        recipe.steps = max(recipe.steps, 250)

    rules = ("loss_not_decreasing", "labels_shuffled", "labels_unrelated", "overfit")
    return Fault("rolled_labels", change, rules, "setup")


def unknown_words(share: float = 0.97, token: int = 1) -> Fault:
    """Another vocabulary: nearly all tokens are read as the one for unknown words."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        random = torch.Generator().manual_seed(4)
        lost = torch.rand(x.shape, generator=random) < share
        recipe.train = (torch.where(lost, token, x), y)

    return Fault("unknown_words", change, ("nlp_sequence_ratio",), "sagemaker")
