"""Faults that were declared with the tables of the tenth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["leaves_held_down"]


def leaves_held_down(strength: float = 1e6) -> Fault:
    """A penalty on leaves that was found for a loss summed over far more rows: trees say next to nothing."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"lambda": strength}

    return Fault("leaves_held_down", change, ("loss_not_decreasing", "constant_output"), "sagemaker")
