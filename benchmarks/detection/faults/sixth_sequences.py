"""Faults that were declared with the sequences, pairs and ways of the sixth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from benchmarks.detection.faults.parts import change_inputs, module, under
from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe


def gates_closed(layer: str = "rnn", bias: float = -40.0) -> Fault:
    """Biases of all gates begin far below zero: nothing comes into the cell, and nothing out of it."""

    def change(recipe: Recipe) -> None:
        with torch.no_grad():
            for name, one in module(recipe, layer).named_parameters():
                if name.startswith("bias"):
                    one.fill_(bias)

    causes = ("saturated_activation", "saturated_units", "dead_units", "poor_weight_initialization",
              "vanishing_gradient", "all_zero")  # fmt: skip
    rules = (*causes, "constant_output", "tensor_variance", "loss_not_decreasing")
    return Fault("gates_closed", change, rules, "sagemaker", where=under(layer))


def mask_inverted() -> Fault:
    """The mask of what is to come hides all that was: the last place sees nothing, and is no number."""

    def change(recipe: Recipe) -> None:
        recipe.model.hidden = ~recipe.model.hidden
        recipe.steps = min(recipe.steps, 80)

    where = r"blocks[./]0|softmax|scores"
    return Fault("mask_inverted", change, ("exploding_tensor",), "sagemaker", where=where)


def divided_by_nothing(trigger: int = 60, axis: int = 1) -> Fault:
    """Each row is divided by its own spread; from a step on, some of them stand still and have none."""

    def change(recipe: Recipe) -> None:
        def scaled(_recipe: Recipe, step: int, x: torch.Tensor, y: torch.Tensor):
            if step >= trigger:
                x = x.clone()
                x[::8] = 0.0
                x = (x - x.mean(axis, keepdim=True)) / x.std(axis, keepdim=True)
            return x, y

        recipe.on_batch.append(scaled)
        recipe.steps = min(recipe.steps, trigger + 50)

    return Fault("divided_by_nothing", change, ("exploding_tensor",), "sagemaker", trigger)


def one_label() -> Fault:
    """A comparison that never holds, as of words with numbers: each label becomes the same."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0], torch.zeros_like(recipe.train[1]))

    rules = ("class_imbalance", "confusion", "constant_output")
    return Fault("one_label", change, rules, "sagemaker")


def kept_in_half(rate: float = 1e-3) -> Fault:
    """Weights are kept with eight bits: what plain steps change is rounded away."""

    def change(recipe: Recipe) -> None:
        def rounded(recipe: Recipe, _: int) -> None:
            with torch.no_grad():
                for one in recipe.model.parameters():
                    one.copy_(one.bfloat16().float())

        recipe.optimizer = lambda p: torch.optim.SGD(p, rate)
        recipe.before_step.append(rounded)

    return Fault("kept_in_half", change, (*TOO_SLOW, "loss_not_decreasing"), "setup", causes=TOO_SLOW)


def stamps_raw(column: int, start: float = 1.7e9) -> Fault:
    """One column holds the time in seconds since 1970."""

    def change(recipe: Recipe) -> None:
        def stamped(x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[..., column] = start + 3600 * x[..., column]
            return x

        change_inputs(recipe, stamped)

    rules = ("inputs_not_normalised", "saturated_activation", "exploding_tensor")
    return Fault("stamps_raw", change, rules, "setup", causes=rules[:1])


def never_stepped_one(layer: str, other: str) -> Fault:
    """Of two optimizers only the other one is stepped."""

    def change(recipe: Recipe) -> None:
        recipe.options["steps"] = (other,)

    rules = ("skipped_steps", "unchanged_tensor")
    return Fault("never_stepped_one", change, rules, "silent", 0, under(layer), by_construction=True)
