"""Faults that were declared with the second held-out set."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.parts import change_inputs, put_behind
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

NOT_SCALED = ("inputs_not_normalised", "learning_rate_scale", "weight_update_ratio", "exploding_tensor")


def zeroed_before_step() -> Fault:
    """Gradients are set to zero between backward and step: nothing but momentum is left."""

    def change(recipe: Recipe) -> None:
        def clear(_: int) -> bool:
            recipe.model.zero_grad()
            return True

        recipe.steps_optimizer = clear

    rules = ("stale_gradients", "parameters_without_gradient", "skipped_steps", "unchanged_tensor")
    return Fault("zeroed_before_step", change, rules, "silent", by_construction=True)


def set_back(trigger: int = 90) -> Fault:
    """The weights of the beginning are loaded again in mid-run."""

    def change(recipe: Recipe) -> None:
        first = copy.deepcopy(recipe.model.state_dict())

        def load(recipe: Recipe, step: int) -> None:
            if step == trigger:
                recipe.model.load_state_dict(first)

        recipe.before_step.append(load)
        recipe.steps = trigger + 50

    return Fault("set_back", change, ("replaced_weights",), "silent", trigger, by_construction=True)


def redundant_sigmoid(head: str) -> Fault:
    """A sigmoid at the end of the model, and again in the loss."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Sigmoid())
        plain = recipe.score
        recipe.score = lambda told, wanted: plain(torch.logit(told, 1e-6), wanted)

    return Fault("redundant_sigmoid", change, WRONG_OUTPUT, "setup")


def spread_targets() -> Fault:
    """Targets in a row against outputs in a column: the loss compares each with each."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0], recipe.train[1].flatten())
        plain = recipe.score
        recipe.score = lambda told, wanted: plain(told, wanted.reshape(-1, 1))

    return Fault("spread_targets", change, WRONG_OUTPUT, "setup")


def bytes_for_shares() -> Fault:
    """Masks as they came from the file, 0 and 255, where the loss expects 0 to 1."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0], recipe.train[1] * 255.0)

    return Fault("bytes_for_shares", change, ("labels_out_of_range", *WRONG_OUTPUT), "setup")


def one_large_column(column: int = 0, factor: float = 3e4) -> Fault:
    """One column in grams where the others are in tons."""

    def change(recipe: Recipe) -> None:
        scale = torch.ones(recipe.train[0].shape[1])
        scale[column] = factor
        change_inputs(recipe, lambda x: x * scale)

    return Fault("one_large_column", change, NOT_SCALED, "setup", causes=NOT_SCALED[:1])


def probabilities_for_logs(head: str) -> Fault:
    """Probabilities where the loss expects their logarithms."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Softmax(dim=1))
        recipe.criterion = nn.NLLLoss()

    return Fault("probabilities_for_logs", change, WRONG_OUTPUT, "setup")
