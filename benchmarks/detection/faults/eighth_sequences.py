"""Faults that were declared with the sequences, pairs and ways of the eighth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.detection.faults.parts import module, under
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["part_in_eval"]


def part_in_eval(layer: str) -> Fault:
    """One part is put into evaluation mode before each step, as is done where it only gives features."""

    def change(recipe: Recipe) -> None:
        recipe.before_step.append(lambda recipe, _: module(recipe, layer).eval())

    return Fault("part_in_eval", change, ("training_in_eval_mode",), "silent", 0, under(layer),
                 by_construction=True)  # fmt: skip
