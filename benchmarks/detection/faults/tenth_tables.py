"""Faults that were declared with the tables of the tenth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["columns_mixed", "leaves_held_down", "weight_upside_down"]


def leaves_held_down(strength: float = 1e6) -> Fault:
    """A penalty on leaves that was found for a loss summed over far more rows: trees say next to nothing."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"lambda": strength}

    return Fault("leaves_held_down", change, ("loss_not_decreasing", "constant_output"), "sagemaker")


def weight_upside_down() -> Fault:
    """A yes weighs as many times less as it should weigh more: yes over no, for no over yes."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"scale_pos_weight": 1 / recipe.options["scale_pos_weight"]}

    return Fault("weight_upside_down", change, ("class_imbalance", "confusion"), "sagemaker")


def columns_mixed() -> Fault:
    """The held-out file has its columns in another order, and they are read by their place."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.held
        order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(16))
        recipe.held = (x[:, order], y)

    return Fault("columns_mixed", change, ("overfit", "overtraining"), "sagemaker")
